package compose

import (
	"fmt"
	"strings"
	"testing"

	"headgate/internal/migrate/importer"
)

// projectLines is what a project says, in lines: services with their labels, variables and ports,
// verdicts, and what to look at.
func projectLines(p *Project) string {
	var b strings.Builder
	for _, s := range p.Services {
		fmt.Fprintf(&b, "service %s ports=%v\n", s.Name, s.Ports)
		for _, l := range s.AllLabels() {
			fmt.Fprintf(&b, "label %s:%d %s\n", l.File, l.Line, l.Text())
		}
		for _, e := range s.Env {
			fmt.Fprintf(&b, "env %s:%d %s\n", e.File, e.Line, e.Text())
		}
		for _, c := range s.Command {
			fmt.Fprintf(&b, "command %s\n", c.Key)
		}
	}
	for _, e := range p.Entries {
		fmt.Fprintf(&b, "%s:%d %s is %s %s\n", e.File, e.Line, e.Directive, e.Verdict, e.Note)
	}
	for _, c := range p.Check {
		fmt.Fprintf(&b, "check %s\n", c)
	}
	return b.String()
}

func TestRead(t *testing.T) {
	for name, c := range map[string]struct {
		files     map[string]string
		names     []string
		want, not []string
	}{
		"anchors and merges": {map[string]string{"compose.yml": `
x-a: &a {traefik.one: a, traefik.two: a}
x-b: &b {<<: *a, traefik.two: b, traefik.three: b}
services:
  s: &s {image: x, labels: {<<: [*b, {traefik.four: c}], traefik.three: own}, expose: [&port 8080]}
  t: {<<: *s, labels: {traefik.only: t}, ports: [*port]}
`}, nil, []string{"label compose.yml:2 s: traefik.one=a", "s: traefik.two=b", "s: traefik.three=own", "s: traefik.four=c", "t: traefik.only=t", "service t ports=[8080]"}, []string{"<<", "t: traefik.one"}},
		"lists and maps": {map[string]string{"compose.yml": `
services:
  s: {labels: ["caddy=a.example.com", "caddy.respond=x=y"], environment: {VIRTUAL_PORT: 80, EMPTY: }, ports: ["127.0.0.1:8080:80/tcp", {target: 9000}, "3000-3005:5000-5005"], command: "--a=b 'c'"}
`}, nil, []string{"s: caddy.respond=x=y", "s: VIRTUAL_PORT=80", "ports=[80 9000 5000]", "command --a=b", "command c"}, nil},
		"extends": {map[string]string{"compose.yml": `
services:
  base: {labels: {traefik.a: base, traefik.b: base}, expose: [80]}
  s: {extends: base, labels: {traefik.b: own}}
  far: {extends: {file: sub/other.yml, service: deep}, environment: {A: own}}
  lost: {extends: {file: none.yml, service: x}}
  gone: {extends: {service: nobody}}
`, "sub/other.yml": `
services:
  deep: {extends: {file: more.yml, service: deepest}, environment: {A: deep, B: deep}}
`, "sub/more.yml": "services: {deepest: {labels: [traefik.deep=yes]}}"}, nil,
			[]string{"s: traefik.a=base", "s: traefik.b=own", "service s ports=[80]", "far: A=own", "env sub/other.yml:3 far: B=deep", "label sub/more.yml:1 far: traefik.deep=yes",
				"s: extends base is ignored", "lost: extends is not_possible", "gone: extends is not_possible compose.yml has no service nobody", "check compose.yml:6: what service lost extends could not be read"}, nil},
		"extends in a circle": {map[string]string{"compose.yml": "services: {a: {extends: b}, b: {extends: a, labels: [x=1]}}"}, nil, []string{"extends itself", "b: x=1"}, nil},
		"include": {map[string]string{"compose.yml": `
include: [a.yml, {path: [b/c.yml, "${WHICH}.yml"], env_file: b.env}, none.yml]
services: {}
`, "a.yml": "services: {a: {labels: [x=1]}}", "b/c.yml": "include: [../d.yml]\nservices: {c: {}}", "d.yml": "services: {d: {}}", ".env": "WHICH=e", "e.yml": "services: {e: {}}"}, nil,
			[]string{"service a ", "service d ", "service c ", "service e ", "include: a.yml is ignored", "include: none.yml is not_possible", "env_file: b.env is not_possible", "check compose.yml:2: include: none.yml could not be read"}, nil},
		"include in a circle": {map[string]string{"compose.yml": "include: [a.yml]", "a.yml": "include: [compose.yml]\nservices: {a: {}}"}, nil, []string{"service a ", "it includes itself"}, nil},
		"variables": {map[string]string{"compose.yml": `
services:
  s:
    labels: ["a=${HOST}", "b=$HOST/$$1", "c=${NONE:-other}", "d=${EMPTY:-other}", "e=${EMPTY-other}", "f=${HOST:+there}", "g=${NONE}", "h=${NONE?needed}", "hash=$$apr1$$x$$y"]
    environment: [HOST, "VIRTUAL_HOST=${HOST}"]
`, ".env": "# who\nexport HOST = \"a.example.com\" # the host\nEMPTY=\n"}, nil,
			[]string{"s: a=a.example.com", "s: b=a.example.com/$1", "s: c=other", "s: d=other", "s: e=\n", "s: f=there", "s: g=${NONE}", "s: h=${NONE?needed}", "s: hash=$apr1$x$y", "s: HOST=a.example.com", "s: VIRTUAL_HOST=a.example.com", "check compose.yml:4: $NONE has no value in .env"}, nil},
		"files with variables": {map[string]string{"compose.yml": `
services:
  s: {env_file: [one.env, {path: two.env, required: false}, three.env], environment: {A: own}}
  t: {env_file: one.env}
`, "one.env": "A=1\nB='x y' # z\nVIRTUAL_HOST=a.example.com"}, nil,
			[]string{"s: A=own", "env one.env:2 s: B=x y", "env one.env:3 s: VIRTUAL_HOST=a.example.com", "t: A=1", "s: env_file: one.env is ignored", "s: env_file: two.env is ignored", "s: env_file: three.env is not_possible"}, nil},
		"profiles": {map[string]string{"compose.yml": "services: {debug: {profiles: [debug], labels: [x=1]}}"}, nil, []string{"debug: x=1", "debug: profiles is ignored", "check compose.yml:1: service debug has profiles"}, nil},
		"a swarm":  {map[string]string{"compose.yml": "services: {s: {labels: [a=1, b=1], deploy: {labels: {b: 2, c: 2}}}}"}, nil, []string{"s: a=1", "s: b=2", "s: c=2"}, nil},
		"an override that is beside": {map[string]string{"compose.yml": "services: {s: {labels: [a=1, b=1], expose: [80]}}", "compose.override.yml": "services: {s: {labels: [b=2], expose: [81]}, t: {}}"}, nil,
			[]string{"s: a=1", "s: b=2", "service s ports=[80 81]", "service t ", "check compose.override.yml was read too"}, []string{"s: b=1"}},
		"an override that is named": {map[string]string{"compose.yml": "services: {s: {labels: [a=1]}}", "compose.override.yml": "services: {s: {labels: [b=2]}}"}, []string{"compose.yml", "compose.override.yml"},
			[]string{"s: a=1", "s: b=2"}, []string{"read too"}},
	} {
		files := map[string][]byte{}
		for name, text := range c.files {
			files[name] = []byte(text)
		}
		if c.names == nil {
			c.names = []string{"compose.yml"}
		}
		p, err := Read(c.names, importer.Given(files))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := projectLines(p)
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in\n%s", name, want, got)
			}
		}
		for _, not := range c.not {
			if strings.Contains(got, not) {
				t.Errorf("%s: %q in\n%s", name, not, got)
			}
		}
	}
}

// Files that mean harm cost no more than their bounds.
func TestReadIsBounded(t *testing.T) {
	bomb := "x0: &x0 {a: 1, b: 2}\n"
	for i := range 40 {
		bomb += fmt.Sprintf("x%d: &x%d {<<: [%s]}\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*x%d, ", i), 50), ", "))
	}
	wide := "x0: &x0 {k: v}\n"
	for i := range 3000 {
		wide += fmt.Sprintf("x%d: &x%d {<<: *x%d, k%d: v}\n", i+1, i+1, i, i)
	}
	many := map[string][]byte{}
	for i := range 300 {
		many[fmt.Sprintf("%d.yml", i)] = fmt.Appendf(nil, "include: [%d.yml]\nservices: {}", i+1)
	}
	for name, c := range map[string]struct {
		files map[string][]byte
		want  string
	}{
		"merges of merges":    {map[string][]byte{"0.yml": []byte(bomb + "services: {s: {labels: *x40}}")}, ""},
		"ever larger merges":  {map[string][]byte{"0.yml": []byte(wide + "services: {s: {labels: *x3000}}")}, "too much"},
		"a map in itself":     {map[string][]byte{"0.yml": []byte("services: &s {a: &a {<<: *a, labels: &l {<<: [*l, *a], x: *a}}, b: *s}")}, ""},
		"a chain of includes": {many, ""},
		"binary":              {map[string][]byte{"0.yml": []byte("\x00\x01\x02")}, "0.yml"},
		"a list":              {map[string][]byte{"0.yml": []byte("[a, b]")}, "no Compose file"},
		"services are a text": {map[string][]byte{"0.yml": []byte("services: all")}, "no Compose file"},
		"empty":               {map[string][]byte{"0.yml": nil}, "empty"},
	} {
		_, err := Read([]string{"0.yml"}, importer.Given(c.files))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
