// Command gen generates the reference page and the JSON Schema from the types of the
// configuration. It is run by go generate; a test fails if its output is stale.
package main

import (
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"headgate/internal/config"
	"headgate/internal/schema"
)

// intro is the text above the objects on the reference page.
//
//go:embed intro.md
var intro string

// labels is the text above the fields on the page of labels.
//
//go:embed labels.md
var labels string

func main() {
	root := flag.String("root", ".", "the folder of the module")
	flag.Parse()
	if err := write(*root); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// write writes every generated file.
func write(root string) error {
	files, err := generate(root)
	if err != nil {
		return err
	}
	for name, data := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generate returns every generated file by its path in the module.
func generate(root string) (map[string][]byte, error) {
	comments := schema.NewComments("headgate", root)
	reference, err := schema.Reference(config.Describe(), comments, intro)
	if err != nil {
		return nil, err
	}
	document, err := schema.JSONSchema(config.Describe(), comments, "headgate configuration")
	if err != nil {
		return nil, err
	}
	var kinds []*schema.Object
	for _, name := range []string{"proxies", "tcp_proxies", "udp_proxies"} {
		kinds = append(kinds, config.KindOf(name).Schema())
	}
	page, err := schema.LabelReference(kinds, comments, labels)
	if err != nil {
		return nil, err
	}
	const embedded = "internal/config/schema.json.gz"
	kept, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(embedded)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	packed, err := schema.Pack(document, kept)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		"docs/reference/labels.md":        page,
		"docs/reference/configuration.md": reference,
		"internal/config/schema.json":     document,
		embedded:                          packed,
	}, nil
}
