package engine_test

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/icebergexec/icebergexec/engine"
	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/plan"
	"github.com/icebergexec/icebergexec/tests/tables/fixtures"
)

func planTasks(t *testing.T, eng *engine.Engine, request engine.PlanRequest) (tasks []*plan.Task) {
	t.Helper()
	p, err := eng.Plan(ctx, request)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for {
		one, err := p.Next(ctx)
		if err == io.EOF {
			return tasks
		}
		if err != nil {
			t.Fatal(err)
		}
		tasks = append(tasks, one)
	}
}

func encode(t *testing.T, tasks []*plan.Task) []json.RawMessage {
	t.Helper()
	texts := []json.RawMessage{}
	for _, one := range tasks {
		text, err := one.Encode()
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	return texts
}

// Splits of a plan, executed one after the other, give the rows of the scan.
func TestExecuteSplits(t *testing.T) {
	eng := tables(t, engine.Options{Threads: 2})
	seen := map[string]bool{}
	for _, c := range fixtures.Cases(t) {
		if seen[c.Name] {
			continue
		}
		seen[c.Name] = true
		request := engine.ScanRequest{MetadataLocation: c.MetadataLocation}
		want, err := scanRows(eng, request)
		if err != nil {
			continue // tested elsewhere
		}
		tasks := planTasks(t, eng, engine.PlanRequest{MetadataLocation: c.MetadataLocation})
		for _, n := range []int{1, 3} {
			var got []string
			splits := plan.Split(tasks, n)
			if len(splits) > n {
				t.Errorf("%s: %d splits, want at most %d", c.Name, len(splits), n)
			}
			for _, split := range splits {
				request.Tasks = encode(t, split)
				rows, err := scanRows(eng, request)
				if err != nil {
					t.Fatalf("%s: %v", c.Name, err)
				}
				got = append(got, rows...)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s in %d splits: got %d rows, want %d", c.Name, n, len(got), len(want))
			}
		}
	}
}

// The batches of a plan hold the tasks that Next returns.
func TestPlanStream(t *testing.T) {
	eng := tables(t, engine.Options{BatchRows: 2})
	for _, c := range fixtures.Cases(t) {
		request := engine.PlanRequest{MetadataLocation: c.MetadataLocation, Metrics: true}
		tasks := planTasks(t, eng, request)
		p, err := eng.Plan(ctx, request)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		stream := p.Stream()
		for {
			record, err := stream.Next(ctx)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			texts := record.Column(int(record.NumCols()) - 1).(*array.String)
			for i := range texts.Len() {
				got = append(got, strings.Clone(texts.Value(i)))
				one := tasks[len(got)-1]
				if path := record.Column(0).(*array.String).Value(i); path != one.Data.Path {
					t.Errorf("%s: path %s, want %s", c.Name, path, one.Data.Path)
				}
				if !json.Valid([]byte(record.Column(5).(*array.String).Value(i))) {
					t.Errorf("%s: partition %s", c.Name, record.Column(5).ValueStr(i))
				}
			}
			record.Release()
		}
		if err := stream.Close(); err != nil {
			t.Error(err)
		}
		var want []string
		for _, text := range encode(t, tasks) {
			want = append(want, string(text))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", c.Name, got, want)
		}
	}
}

func TestTaskErrors(t *testing.T) {
	eng := tables(t, engine.Options{})
	at := location(t, fixtures.Cases(t)[0].Name)
	good := string(encode(t, planTasks(t, eng, engine.PlanRequest{MetadataLocation: at}))[0])
	for _, test := range []struct{ old, new, part string }{
		{`{"version":1`, `{"version":2`, "tasks[0]: version is 2; it must be 1"},
		{`{"version":1`, `{"version":1,"colour":"red"`, `tasks[0]: not a task: unknown field "colour"`},
		{`{"version":1`, `[1`, "not a task"},
		{`"content":"data"`, `"content":"rows"`, `content is "rows"`},
		{`"content":"data"`, `"content":"position-deletes"`, `content is "position-deletes"; it must be "data"`},
		{`"spec_id":`, `"spec_id":77`, "which the table does not have"},
		{`"partition":[`, `"partition":[1,2,3,4,`, "fields"},
		{`"file_size_in_bytes":`, `"file_size_in_bytes":-`, "at least 0"},
		{`"data_sequence_number":`, `"data_sequence_number":null,"file_sequence_number":`, "data_sequence_number must be"},
	} {
		text := strings.Replace(good, test.old, test.new, 1)
		if test.old == `"partition":[` && strings.Contains(good, `"partition":[]`) {
			text = strings.Replace(good, `"partition":[]`, `"partition":[1]`, 1)
		}
		_, err := eng.Scan(ctx, engine.ScanRequest{MetadataLocation: at, Tasks: []json.RawMessage{json.RawMessage(text)}})
		wantError(t, err, errs.InvalidArgument, test.part)
	}
	if got := mustScan(t, eng, engine.ScanRequest{MetadataLocation: at, Tasks: []json.RawMessage{}}); len(got) != 0 {
		t.Errorf("no tasks gave %d rows", len(got))
	}
}

// Engine.Close ends a plan that is not read to its end.
func TestPlanClosedWithEngine(t *testing.T) {
	eng := tables(t, engine.Options{})
	p, err := eng.Plan(ctx, engine.PlanRequest{MetadataLocation: fixtures.Cases(t)[0].MetadataLocation})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Next(ctx); err != nil {
		t.Fatal(err)
	}
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = p.Next(ctx)
	wantError(t, err, errs.Cancelled, "the engine is closed")
}
