package compose

import (
	"errors"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"

	"headgate/internal/migrate/importer"
)

// placeholder is $$, $NAME or ${NAME…} in a value of a Compose file.
var placeholder = regexp.MustCompile(`\$(?:\$|([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)(?:(:?[-?+])([^{}]*))?\})`)

// maxNested bounds how deep variables are within the defaults of others.
const maxNested = 8

// nested is a variable in the default of another one.
var nested = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*:?[-+][^{}$]*\$\{[^{}]*\}`)

// fill inserts the variables of the file .env into a value, as Compose does. One that
// does not exist and has no default stays, and is reported.
func (r *reader) fill(file string, line int, value string) string {
	if !strings.Contains(value, "$") {
		return value
	}
	for range maxNested { // a default may have a variable in it, which comes first
		if inner := nested.ReplaceAllStringFunc(value, func(found string) string {
			at := strings.LastIndex(found, "${")
			return found[:at] + r.fill(file, line, found[at:])
		}); inner != value {
			value = inner
			continue
		}
		break
	}
	return placeholder.ReplaceAllStringFunc(value, func(found string) string {
		if found == "$$" {
			return "$"
		}
		m := placeholder.FindStringSubmatch(found)
		name, how, other := m[1]+m[2], m[3], m[4]
		have, is := r.lookup(file, name)
		if strings.HasPrefix(how, ":") {
			is = is && have != ""
		}
		switch how = strings.TrimPrefix(how, ":"); {
		case how == "+" && is:
			return other
		case how == "+":
			return ""
		case is:
			return have
		case how == "-":
			return other
		}
		r.unknown(file, line, name)
		return found
	})
}

// variable returns a variable that a service inherits from the environment of
// Compose.
func (r *reader) variable(file, name string) string {
	value, _ := r.lookup(file, name)
	return value
}

// lookup returns a variable of the file .env: that of the project's folder, or else the
// one beside the file that is included.
func (r *reader) lookup(file, name string) (string, bool) {
	if len(r.project.Files) > 0 {
		if value, ok := r.env(r.project.Files[0])[name]; ok {
			return value, true
		}
	}
	value, ok := r.env(file)[name]
	return value, ok
}

// unknown reports once that a variable has no value here.
func (r *reader) unknown(file string, line int, name string) {
	if key := file + " " + name; !r.filled[key] {
		r.filled[key] = true
		r.check("%s:%d: $%s has no value in %s; Compose reads it from its environment: write the value in the document, or give it to headgate as a variable", file, line, name, beside(file, ".env"))
	}
}

// env returns the variables of the file .env beside a file.
func (r *reader) env(file string) map[string]string {
	name := beside(file, ".env")
	if r.project.env == nil {
		r.project.env = map[string]map[string]string{}
	}
	if known, ok := r.project.env[name]; ok {
		return known
	}
	out := map[string]string{}
	r.project.env[name] = out
	data, err := r.files.Read(name)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			r.check("%s could not be read: %v", name, err)
		}
		return out
	}
	for _, v := range variables(string(data)) {
		out[v.key] = v.value
	}
	return out
}

// envFiles reads the files with variables of a service.
func (r *reader) envFiles(file, service string, n *yaml.Node) (all []*Setting) {
	items := elements(n)
	if n != nil && n.Kind != yaml.SequenceNode {
		items = []*yaml.Node{n}
	}
	for _, item := range items {
		text, required := item.Value, true
		if item.Kind == yaml.MappingNode {
			if p := field(item, "path"); p != nil {
				text = p.Value
			}
			if q := field(item, "required"); q != nil && q.Value == "false" {
				required = false
			}
		}
		if text == "" {
			continue
		}
		name := beside(file, r.fill(file, item.Line, text))
		what := service + ": env_file: " + filepath.Base(name)
		data, err := r.files.Read(name)
		switch {
		case err != nil && !required:
			r.omit(file, item.Line, what, importer.Ignored, "it is not there, and may be missing")
		case err != nil:
			r.omit(file, item.Line, what, importer.Impossible, "its variables are not known: %v", err)
			r.check("%s:%d: the variables of %s are not known: %v", file, item.Line, name, err)
		default:
			r.omit(file, item.Line, what, importer.Ignored, "its variables count")
			var own []*Setting
			for _, v := range variables(string(data)) {
				if r.count++; r.count <= maxSettings {
					own = append(own, &Setting{Origin: importer.Origin{File: name, Line: v.line}, Service: service, Key: v.key, Value: v.value})
				}
			}
			all = with(all, own)
		}
	}
	return all
}

// assigned is a variable of a file.
type assigned struct {
	key, value string
	line       int
}

// variables reads lines NAME=VALUE.
func variables(text string) (all []assigned) {
	line := 0
	for one := range strings.Lines(text) {
		line++
		one = strings.TrimPrefix(strings.TrimSpace(one), "export ")
		key, value, ok := strings.Cut(one, "=")
		if key = strings.TrimSpace(key); !ok || key == "" || strings.HasPrefix(key, "#") || len(all) >= maxSettings {
			continue
		}
		value = strings.TrimSpace(value)
		if q := value; len(q) >= 2 && (q[0] == '"' || q[0] == '\'') && strings.IndexByte(q[1:], q[0]) >= 0 {
			value = q[1 : 1+strings.IndexByte(q[1:], q[0])]
		} else if i := strings.Index(value, " #"); i >= 0 {
			value = strings.TrimSpace(value[:i])
		}
		all = append(all, assigned{key, value, line})
	}
	return all
}
