package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"headgate/internal/config"
	"headgate/internal/schema"
)

// bag is a JSON object that is being written.
type bag = map[string]any

var placeholder = regexp.MustCompile(`\{([a-z]+)\}`)

// Document returns the OpenAPI 3.1 document of the table as JSON. Every field needs a
// comment, and every type a unique name; the error lists those that have none.
func (a *API) Document(comments *schema.Comments) ([]byte, error) {
	d := &specification{schemas: bag{}, refusals: bag{}, types: map[string]reflect.Type{}, comments: comments}
	paths := bag{}
	for _, r := range a.rows {
		path, ok := paths[Prefix+r.path].(bag)
		if !ok {
			path = bag{}
			paths[Prefix+r.path] = path
		}
		path[strings.ToLower(r.method)] = d.operation(r)
	}
	d.schema(of[problem]())
	shared := shareParameters(paths)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(bag{
		"openapi": "3.1.0",
		"info":    bag{"title": "headgate", "version": "v1", "description": "The management API of headgate."},
		"servers": []bag{{"url": "/"}},
		"paths":   paths,
		"components": bag{
			"schemas":    d.schemas,
			"responses":  d.refusals,
			"parameters": shared,
			"securitySchemes": bag{
				"token":   bag{"type": "http", "scheme": "bearer", "description": "A token, which starts with hg_."},
				"cookie":  bag{"type": "apiKey", "in": "cookie", "name": Cookie},
				"session": bag{"type": "apiKey", "in": "header", "name": Header},
			},
		},
		"security": []bag{{"token": []string{}}, {"cookie": []string{}, "session": []string{}}},
	})
	// Each property of a schema, and each status of an operation, has a line.
	return schema.Lines(bytes.TrimSpace(b.Bytes()), 5), errors.Join(d.failed, err)
}

// specification collects the schemas that operations refer to.
type specification struct {
	schemas  bag
	refusals bag                     // the responses of refusals, by name
	types    map[string]reflect.Type // what the schemas are of, by name
	comments *schema.Comments
	failed   error // the first field without a comment, or the first name that two types have
}

func (d *specification) operation(r *row) bag {
	op := bag{"summary": r.about, "operationId": r.id(), "tags": []string{strings.Split(r.path, "/")[1]}, "responses": d.responses(r)}
	if r.access == public {
		op["security"] = []bag{{}}
	} else {
		op["description"] = "Requires the role " + string(r.access) + "; a token with scopes also needs the scope " + r.area + "."
	}
	if p := parameters(r); len(p) > 0 {
		op["parameters"] = p
	}
	if r.upload != "" {
		op["requestBody"] = bag{"required": true, "content": bag{r.upload: bag{"schema": bag{"type": "string", "format": "binary"}}}}
	}
	if r.in != nil {
		kind := "application/json"
		if r.current != nil || r.merge {
			kind = "application/merge-patch+json"
			op["requestBody"] = bag{"required": true, "content": bag{kind: bag{"schema": bag{"type": "object"}}}}
			return op
		}
		var body bag
		if r.tree {
			body = bag{"allOf": []bag{d.objectSchema(r.kind), {"type": "object", "properties": bag{"name": bag{"type": "string"}}}}}
		} else {
			body = d.schema(r.in)
		}
		op["requestBody"] = bag{"required": true, "content": bag{kind: bag{"schema": body}}}
	}
	return op
}

// shareParameters replaces parameters that many operations have by references, and returns
// them by name: the document is part of the program.
func shareParameters(paths bag) bag {
	const many = 4
	counts, names, shared := map[string]int{}, map[string]string{}, bag{}
	each := func(do func(p bag, text string) bag) {
		for _, path := range slices.Sorted(maps.Keys(paths)) {
			for _, method := range slices.Sorted(maps.Keys(paths[path].(bag))) {
				all, _ := paths[path].(bag)[method].(bag)["parameters"].([]bag)
				for i, p := range all {
					text, _ := json.Marshal(p)
					all[i] = do(p, string(text))
				}
			}
		}
	}
	each(func(p bag, text string) bag {
		counts[text]++
		return p
	})
	each(func(p bag, text string) bag {
		if counts[text] < many {
			return p
		}
		name, known := names[text]
		for n := 2; !known; n++ {
			if name == "" {
				name = p["name"].(string)
			}
			if _, taken := shared[name]; taken {
				name = fmt.Sprint(p["name"], n)
				continue
			}
			shared[name], names[text], known = p, name, true
		}
		return bag{"$ref": "#/components/parameters/" + name}
	})
	return shared
}

// id returns a name of the operation: "GET /users/{name}" is "getUsersName".
func (r *row) id() string {
	id := strings.ToLower(r.method)
	for _, part := range strings.FieldsFunc(r.path, func(c rune) bool { return strings.ContainsRune("/{}._-", c) }) {
		id += strings.ToUpper(part[:1]) + part[1:]
	}
	return id
}

func parameters(r *row) []bag {
	var all []bag
	for _, m := range placeholder.FindAllStringSubmatch(r.path, -1) {
		all = append(all, bag{"name": m[1], "in": "path", "required": true, "schema": bag{"type": "string"}})
	}
	query := r.query
	if r.dry {
		query = append(slices.Clone(query), parameter{name: "dry_run", about: "Returns the response without changing anything.", kind: "boolean"})
	}
	for _, p := range query {
		s := bag{"type": "string"}
		if p.kind != "" {
			s["type"] = p.kind
		}
		if len(p.enum) > 0 {
			s["enum"] = p.enum
		}
		all = append(all, bag{"name": p.name, "in": "query", "description": p.about, "schema": s})
	}
	if r.match {
		all = append(all, bag{"name": "If-Match", "in": "header", "required": true, "description": "The ETag of the object that the change is based on, or *.", "schema": bag{"type": "string"}})
	}
	if r.upload != "" {
		all = append(all, bag{"name": passphraseField, "in": "header", "description": "The passphrase of an encrypted archive, in base64.", "schema": bag{"type": "string"}})
	}
	return all
}

func (d *specification) responses(r *row) bag {
	all := bag{}
	status := r.status
	content := bag{}
	switch {
	case r.media != "":
		content[r.media] = bag{"schema": bag{"type": "string", "format": "binary"}}
	case r.stream != nil:
		content["text/event-stream"] = bag{"schema": bag{"type": "string"}}
	case r.list:
		content["application/json"] = bag{"schema": bag{"type": "object", "required": []string{"items"}, "properties": bag{
			"items": bag{"type": "array", "items": d.answer(r)}, "next": bag{"type": "string"}}}}
	case r.out != nil || r.gives:
		content["application/json"] = bag{"schema": d.answer(r)}
	case r.path == "/openapi.json" || r.free:
		content["application/json"] = bag{"schema": bag{"type": "object"}}
	}
	success := bag{"description": "Done."}
	if len(content) > 0 {
		success["content"] = content
		if status == 0 {
			status = http.StatusOK
		}
	} else {
		status = http.StatusNoContent
	}
	all[strconv.Itoa(status)] = success
	if r.dry && (status == http.StatusCreated || status == http.StatusAccepted) {
		dry := bag{"description": "The result of a dry run."}
		if len(content) > 0 {
			dry["content"] = content
		}
		all["200"] = dry
	}
	for _, code := range r.statuses() {
		all[strconv.Itoa(code)] = d.refusal(code)
	}
	return all
}

// refusal adds the response of a refusal to those that operations share, and refers to it.
func (d *specification) refusal(status int) bag {
	text := http.StatusText(status)
	name := strings.ReplaceAll(text, " ", "")
	d.refusals[name] = bag{"description": text, "content": bag{"application/problem+json": bag{"schema": ref("problem")}}}
	return bag{"$ref": "#/components/responses/" + name}
}

// statuses returns those of the refusals that a row may answer with.
func (r *row) statuses() []int {
	all := append([]int{400, 403, 421, 500}, r.may...)
	if !r.steady {
		all = append(all, 503)
	}
	if r.access != public {
		all = append(all, 401)
	}
	asked := func(p parameter) bool { return p.name == "proxy" } // for one that may not be there
	if strings.Contains(r.path, "{") || slices.ContainsFunc(r.query, asked) {
		all = append(all, 404)
	}
	if r.in != nil {
		all = append(all, 413, 415)
	}
	if r.upload != "" {
		all = append(all, 413)
	}
	if r.match {
		all = append(all, 412, 428)
	}
	if r.write {
		all = append(all, 409)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func ref(name string) bag { return bag{"$ref": "#/components/schemas/" + name} }

// answer returns the schema of what a row gives.
func (d *specification) answer(r *row) bag {
	if !r.gives {
		return d.schema(r.out)
	}
	return bag{"allOf": []bag{d.schema(stateOf(r.kind)), d.objectSchema(r.kind)}}
}

// objectSchema refers to the schema of the objects of a kind.
func (d *specification) objectSchema(k *config.Kind) bag {
	o := k.Schema()
	return d.object(o, o.Name())
}

// schema adds a struct to the schemas and refers to it.
func (d *specification) schema(t reflect.Type) bag {
	if t.Kind() != reflect.Struct {
		return bag{}
	}
	if t == of[problem]() {
		return d.object(problemObject(), "problem")
	}
	o := schema.Describe(t)
	return d.object(o, o.Name())
}

// problemObject describes the answer to a request that was refused.
func problemObject() *schema.Object { return schema.Describe(of[problem]()) }

// object adds an object to the schemas and refers to it. The second type of a name has
// that of its package before it: compareRequest.
func (d *specification) object(o *schema.Object, name string) bag {
	if other, ok := d.types[name]; ok && other != o.Go {
		name = path.Base(o.Go.PkgPath()) + name
	}
	if other, ok := d.types[name]; ok {
		if other != o.Go && d.failed == nil {
			d.failed = fmt.Errorf("%v and %v would have one schema, %s: rename one of them", other, o.Go, name)
		}
		return ref(name)
	}
	d.types[name] = o.Go
	properties, required := bag{}, []string{}
	s := bag{"type": "object", "properties": properties}
	d.schemas[name] = s
	for _, f := range o.Fields {
		v := d.value(f, f.Type)
		text, err := d.comments.Field(f)
		if d.failed == nil {
			d.failed = err
		}
		v["description"] = text
		if tagged(f, "readonly") {
			v["readOnly"] = true
		}
		if f.Secret || tagged(f, "writeonly") {
			v["writeOnly"] = true
		}
		properties[f.Name] = v
		if f.Required {
			required = append(required, f.Name)
		}
	}
	if len(required) > 0 {
		s["required"] = required
	}
	return ref(name)
}

// value returns the schema of a value of a field's type t, or of its elements.
func (d *specification) value(f *schema.Field, t *schema.Type) bag {
	s := bag{}
	bound := func(low, high string) {
		if f.Min != nil {
			s[low] = *f.Min
		}
		if f.Max != nil {
			s[high] = *f.Max
		}
	}
	switch t.Kind {
	case schema.Struct:
		return bag{"allOf": []bag{d.object(t.Object, t.Object.Name())}}
	case schema.List:
		s["type"], s["items"] = "array", d.value(f, t.Elem)
		bound("minItems", "maxItems")
	case schema.Map:
		s["type"], s["additionalProperties"] = "object", d.value(f, t.Elem)
		bound("minProperties", "maxProperties")
	case schema.Bool:
		s["type"] = "boolean"
	case schema.Int:
		s["type"] = "integer"
		bound("minimum", "maximum")
	case schema.Number:
		s["type"] = "number"
	case schema.Text:
		s["type"] = "string"
		if f.Secret {
			s["format"] = "password"
		}
		if len(f.Enum) > 0 {
			s["enum"] = f.Enum
		} else if t == f.Type {
			bound("minLength", "maxLength")
		}
	case schema.Scalar:
		s["type"] = "string"
		if t.Go == of[time.Time]() {
			s["format"] = "date-time"
		}
	}
	return s
}

// stateOf returns the struct for the state of objects of a kind.
func stateOf(k *config.Kind) reflect.Type {
	switch k.Name {
	case "proxies":
		return of[proxyState]()
	case "tcp_proxies", "udp_proxies":
		return of[streamState]()
	}
	return of[objectState]()
}
