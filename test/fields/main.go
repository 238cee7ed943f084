// Command fields makes what programs and people are told of the fields of KubeletConfiguration from kubeletconfig/fields.csv: the table
// kubeletconfig/fieldtable.go and the page docs/reference/fields.md.
//
//	go generate ./kubeletconfig
//
// Most of the file is kept by hand. The columns type, since and until are read from the types of each kubelet, which takes the module proxy.
// That is for when go.mod has newer types; new fields get rows, whose other columns are then for a person to write:
//
//	go run ./test/fields -types
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	types := flag.Bool("types", false, "first read the types of every kubelet into kubeletconfig/fields.csv")
	root := flag.String("root", ".", "where the tree is")
	flag.Parse()
	if err := run(context.Background(), *root, *types); err != nil {
		fmt.Fprintln(os.Stderr, "fields:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root string, types bool) error {
	source := filepath.Join(root, "kubeletconfig/fields.csv")
	comment, rows, err := readRows(source)
	if err != nil {
		return err
	}
	if types {
		found, err := releases(ctx, root)
		if err != nil {
			return err
		}
		rows = dated(rows, found)
		if err := writeRows(source, comment, rows); err != nil {
			return err
		}
	}
	made, err := outputs(ctx, root, rows)
	if err != nil {
		return err
	}
	for name, content := range made {
		if err := os.WriteFile(filepath.Join(root, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// outputs are the files that are made of the rows, by their names in the tree.
func outputs(ctx context.Context, root string, rows []row) (map[string][]byte, error) {
	newest, err := newestTypes(ctx, root)
	if err != nil {
		return nil, err
	}
	table, err := goTable(rows, newest)
	if err != nil {
		return nil, fmt.Errorf("writing the table: %w", err)
	}
	page, err := page(rows, newest)
	if err != nil {
		return nil, fmt.Errorf("writing the page: %w", err)
	}
	policy, err := policy(rows)
	if err != nil {
		return nil, fmt.Errorf("writing the policy: %w", err)
	}
	return map[string][]byte{"kubeletconfig/fieldtable.go": table, "docs/reference/fields.md": page, "deploy/manifests/controller/layers.yaml": policy}, nil
}
