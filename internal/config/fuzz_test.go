package config

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"headgate/internal/config/decode"
	"headgate/internal/config/format"
	"headgate/internal/server/target"
)

// one is a configuration of one document.
func one(name string, data []byte) Documents {
	return Documents{List: []Document{{name, data}}}
}

// closedLoader reads nothing from outside the file.
func closedLoader() loader {
	return loader{expand: &decode.Expander{
		Lookup: func(name string) (string, bool) { return name, len(name)%2 == 0 },
		Read:   func(string) ([]byte, error) { return nil, errors.New("closed") },
	}}
}

func seed(f *testing.F) {
	for _, folder := range []string{"problems", "format"} {
		for _, data := range sources(f, folder) {
			f.Add(data)
		}
	}
	f.Add([]byte(example))
	f.Add([]byte("version: 1\nx: &a {<<: *a, ? [k] : v}\n"))
	f.Add([]byte("%YAML 1.2\n--- !!map {version: !!int 1, ports: !!null }\n...\n"))
	f.Add([]byte("version: ${V:-1}\nproxies: {a: {routes: [{path: '${P}', fixed_response: {status: \"${S:-204}\"}}]}}\n"))
}

// FuzzLoad holds that no file brings Load down, that it gives a configuration
// or problems, and that every problem can be shown.
func FuzzLoad(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		c, doc, problems := closedLoader().load(one("f", data))
		if (c == nil) == (len(problems) == 0) {
			t.Fatalf("a configuration %v with problems %v", c, problems)
		}
		for _, p := range problems {
			if p.What == "" || strings.ContainsAny(p.Error(), "\x00\r\n") && p.Line == 0 {
				t.Fatalf("problem %q cannot be shown", p.Error())
			}
			if doc != nil && p.Line < 1 {
				t.Fatalf("problem %q has no place", p.Error())
			}
		}
		if c != nil {
			for _, p := range c.Proxies {
				for _, r := range p.Routes {
					p.Effective(r)
					for _, s := range r.Servers {
						if _, err := s.Target(); err != nil {
							t.Fatal(err)
						}
					}
				}
				if _, err := p.Hosts(); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// FuzzFormat holds that the canonical form means the same and is its own
// canonical form.
func FuzzFormat(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		out, problems := format.Canonical(data, Describe())
		if len(problems) > 0 {
			if out != nil {
				t.Fatal("a text in spite of problems")
			}
			return
		}
		again, problems := format.Canonical(out, Describe())
		if len(problems) > 0 || !bytes.Equal(out, again) {
			t.Fatalf("not stable: %v\nonce:\n%q\ntwice:\n%q", problems, out, again)
		}
		sameConfig(t, data, out)
	})
}

// FuzzHosts holds that a virtual host and a server's URL, once read, read the
// same in the form in which they are compared.
func FuzzHosts(f *testing.F) {
	for _, s := range []string{"shop.example.com", "*.Example.COM.", "~^a+$", "größe.de", "[::1]", "xn--strae-oqa.de", "a_b", "1.2.3.4", "1.2.3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, fault := parseVirtualHost(text)
		if fault == nil {
			if again, fault := parseVirtualHost(h.String()); fault != nil || again.String() != h.String() {
				t.Fatalf("host %q reads as %q, that as %q (%v)", text, h, again, fault)
			}
		}
		to, fault := target.Parse("http://" + text)
		if fault == nil {
			if again, fault := target.Parse("http://" + to.Authority() + to.BasePath); fault != nil || again != to {
				t.Fatalf("URL %q reads as %+v, that as %+v (%v)", text, to, again, fault)
			}
		}
	})
}
