// Native prints the rows of an Iceberg table with the engine as a Go package:
//
//	go run ./docs/examples/native METADATA_LOCATION [COLUMN ...]
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/icebergexec/icebergexec/engine"
)

func main() {
	if len(os.Args) < 2 {
		log.Fatalf("usage: %s METADATA_LOCATION [COLUMN ...]", os.Args[0])
	}
	if err := run(context.Background(), os.Args[1], os.Args[2:]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, location string, columns []string) error {
	eng, err := engine.Open(engine.Options{MemoryLimit: 256 << 20})
	if err != nil {
		return err
	}
	defer eng.Close()
	request := engine.ScanRequest{MetadataLocation: location}
	if len(columns) > 0 {
		request.Columns = columns
	}
	rows, err := eng.Scan(ctx, request)
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
