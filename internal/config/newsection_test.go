package config

import (
	"testing"

	"headgate/internal/config/document"
)

// TestANewSectionComesBehindTheLastEntry adds a section to documents whose last entry
// the edit does not touch.
func TestANewSectionComesBehindTheLastEntry(t *testing.T) {
	t.Parallel()
	for _, last := range []string{
		"    routes: [{fixed_response: {status: 200}}]\n",
		"    virtual_hosts: [a] # one\n    routes:\n      - fixed_response: {status: 200}\n      - path: /x\n        fixed_response: {status: 201}\n",
		"    description: |\n      two\n      lines\n",
		"    routes: [\n      {path: /}]\n",
	} {
		text := "version: 1\nports:\n  web: {address: 127.0.0.1:80, protocol: http}\nproxies:\n  first: {routes: [{path: /}]}\n  shop:\n" + last
		docs := Documents{List: []Document{{Name: "x", Data: []byte(text)}}}
		for path, value := range map[string]string{"certificates.main": `{"stored":"none"}`, "admin": `{"address":""}`, "admin.address": `""`} {
			out, p := docs.Edit(document.Edit{Op: document.Set, Path: path, Value: []byte(value)})
			if p != nil {
				t.Errorf("%s: %v in\n%s", path, p, text)
				continue
			}
			got := string(out.List[0].Data)
			if len(got) <= len(text) || got[:len(text)] != text {
				t.Errorf("%s: got\n%s\nwant what was, and the section behind it", path, got)
			}
		}
	}
}
