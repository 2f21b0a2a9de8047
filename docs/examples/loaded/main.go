// Loaded prints the rows of an Iceberg table with the prebuilt library, which
// it loads at run time; it needs no C compiler:
//
//	CGO_ENABLED=0 go run ./docs/examples/loaded LIBRARY METADATA_LOCATION
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/icebergexec/icebergexec/bridge/loader"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatalf("usage: %s LIBRARY METADATA_LOCATION", os.Args[0])
	}
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, library, location string) error {
	lib, err := loader.Load(library)
	if err != nil {
		return err
	}
	engine, err := lib.OpenEngine(`{"memory_limit": "256MiB"}`)
	if err != nil {
		return err
	}
	defer engine.Close()
	request, err := json.Marshal(map[string]any{"metadata_location": location})
	if err != nil {
		return err
	}
	rows, err := engine.Scan(string(request))
	if err != nil {
		return err
	}
	defer rows.Close()
	for {
		batch, err := rows.Next(ctx)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for row := range int(batch.NumRows()) {
			for i, column := range batch.Columns() {
				if i > 0 {
					fmt.Print("\t")
				}
				fmt.Print(column.ValueStr(row))
			}
			fmt.Println()
		}
		batch.Release()
	}
}
