package api

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"headgate/internal/config"
	"headgate/internal/config/document"
	"headgate/internal/schema"
)

// stateFields are the fields of a response that have the state of an object. A request may
// contain them, without effect. A kind that has a setting of such a name keeps it.
var stateFields = []string{"name", "origin", "state", "etag", "servers", "issues", "recent", "last_change", "read_only", "plan"}

// keepTree keeps a body that the configuration is going to check. Fields that it does
// not know are refused here, with where they are.
func (c *call) keepTree(v any) error {
	tree, ok := v.(map[string]any)
	if !ok {
		return refuse("invalid", "", "must be an object", "")
	}
	k := c.row.kind
	name, named := tree["name"]
	for _, field := range stateFields {
		if k.Schema().Field(field) == nil {
			delete(tree, field)
		}
	}
	check := &checker{}
	check.known(tree, k.Schema(), "")
	if err := check.err(); err != nil {
		return err
	}
	c.tree = tree
	want := c.name()
	if k.Single {
		want = k.Name
	}
	text, isText := name.(string)
	switch {
	case c.rq.Method == "POST" && (!named || !isText || text == ""):
		return refuse("invalid", "/name", "must be a name", "")
	case c.rq.Method == "POST":
		c.newName = text
	case named && (!isText || text != want):
		return refuse("invalid", "/name", "name does not match the path", "to rename the object, use POST …/rename")
	}
	return nil
}

// known refuses the names in v that o does not know. The NAME_set of a secret is taken
// out.
func (c *checker) known(v any, o *schema.Object, at string) {
	object, ok := v.(map[string]any)
	if !ok {
		return // the configuration reports what is expected
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if c.full() {
			return
		}
		f := o.Field(name)
		if f == nil {
			if secret := o.Field(strings.TrimSuffix(name, schema.FlagSuffix)); secret != nil && (secret.Secret || secret.MaybeSecret) {
				delete(object, name)
				continue
			}
			remedy := ""
			if near := schema.Nearest(name, o.Names()); near != "" {
				remedy = "did you mean " + strconv.Quote(near) + "?"
			}
			if now := o.Was[name]; now != "" {
				remedy = "it is called " + now + " now"
			}
			c.add("unknown_field", at+"/"+escape(name), "the field is not known", remedy)
			continue
		}
		c.knownIn(object[name], f.Type, at+"/"+escape(name))
	}
}

func (c *checker) knownIn(v any, t *schema.Type, at string) {
	switch t.Kind {
	case schema.Struct:
		c.known(v, t.Object, at)
	case schema.List:
		if list, ok := v.([]any); ok {
			for i, e := range list {
				c.knownIn(e, t.Elem, at+"/"+strconv.Itoa(i))
			}
		}
	case schema.Map:
		if entries, ok := v.(map[string]any); ok {
			for name, e := range entries {
				c.knownIn(e, t.Elem, at+"/"+escape(name))
			}
		}
	}
}

// err returns the problem of what the checker has found.
func (c *checker) err() error {
	if len(c.mistakes) == 0 {
		return nil
	}
	first := c.mistakes[0]
	p := refuse(first.Code, first.Pointer, first.Detail, first.Remedy)
	if len(c.mistakes) > 1 {
		p.Problems = c.mistakes
	}
	return p
}

// treeOf returns an object as a JSON value with its secrets, nil if it is not there.
func treeOf(cfg *config.Config, k *config.Kind, name string) map[string]any {
	form, ok := cfg.Canonical(k.Name, name, false)
	if !ok {
		return nil
	}
	v, err := parse(form)
	if err != nil {
		return nil // our own form
	}
	tree, _ := v.(map[string]any)
	return tree
}

// unmask puts the secrets of an object as it is in the places where a body has the mask.
// An element of a list is the one with the same name, else the one at the same place.
func unmask(v, was any, o *schema.Object, at string) error {
	object, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	old, _ := was.(map[string]any)
	for name, value := range object {
		f := o.Field(name)
		if f == nil {
			continue
		}
		var err error
		if object[name], err = unmaskIn(value, old[name], f, f.Type, at+"/"+escape(name)); err != nil {
			return err
		}
	}
	return nil
}

// unmaskIn returns a value of a field's type t, or of its elements, with the secrets that
// it has the mask of.
func unmaskIn(v, was any, f *schema.Field, t *schema.Type, at string) (out any, err error) {
	switch {
	case (f.Secret || f.MaybeSecret) && v == masked:
		if was == nil || was == masked || t.Elem != nil {
			return nil, refuse("invalid", at, "there is no secret here that could stay", "send the secret")
		}
		return was, nil
	case t.Kind == schema.Struct:
		return v, unmask(v, was, t.Object, at)
	case t.Kind == schema.Map:
		entries, _ := v.(map[string]any)
		old, _ := was.(map[string]any)
		for name, e := range entries {
			if entries[name], err = unmaskIn(e, old[name], f, t.Elem, at+"/"+escape(name)); err != nil {
				return nil, err
			}
		}
	case t.Kind == schema.List:
		list, _ := v.([]any)
		old, _ := was.([]any)
		for i, e := range list {
			if list[i], err = unmaskIn(e, counterpart(list, i, old, f), f, t.Elem, at+"/"+strconv.Itoa(i)); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// unmaskAt is unmask for a value that an edit sets at a path of the documents: an object,
// a field in one, or all objects of a kind.
func unmaskAt(path string, v any, now *config.Config, at string) (any, error) {
	section, rest := document.CutStep(path)
	k := config.KindOf(section.Name)
	if k == nil {
		return v, nil // the configuration reports what is wrong
	}
	if !k.Single && rest == "" {
		objects, _ := v.(map[string]any)
		for name, o := range objects {
			if err := unmask(o, asAny(treeOf(now, k, name)), k.Schema(), at+"/"+escape(name)); err != nil {
				return nil, err
			}
		}
		return v, nil
	}
	var s document.Step
	if !k.Single {
		s, rest = document.CutStep(rest)
	}
	was, f, t := asAny(treeOf(now, k, s.Name)), &schema.Field{}, &schema.Type{Kind: schema.Struct, Object: k.Schema()}
	for rest != "" {
		s, rest = document.CutStep(rest)
		switch {
		case t.Kind == schema.Struct && s.Index < 0:
			if f = t.Object.Field(s.Name); f == nil {
				return v, nil
			}
			t = f.Type
		case t.Elem != nil && (t.Kind == schema.List) == (s.Index >= 0):
			t = t.Elem
		default:
			return v, nil
		}
		was = inside(was, s)
	}
	return unmaskIn(v, was, f, t, at)
}

// hasMask reports whether a value has the mask of a secret in it.
func hasMask(v any) bool {
	switch v := v.(type) {
	case string:
		return v == masked
	case []any:
		return slices.ContainsFunc(v, hasMask)
	case map[string]any:
		for _, e := range v {
			if hasMask(e) {
				return true
			}
		}
	}
	return false
}

// asAny returns a value without a type that hides that there is none.
func asAny(tree map[string]any) any {
	if tree == nil {
		return nil
	}
	return tree
}

// inside returns the member of a JSON value that a step selects, nil if there is none.
func inside(v any, s document.Step) any {
	switch v := v.(type) {
	case map[string]any:
		return v[s.Name]
	case []any:
		if s.Index >= 0 && s.Index < len(v) {
			return v[s.Index]
		}
	}
	return nil
}

// counterpart returns the element of an older list that e is.
func counterpart(list []any, i int, old []any, f *schema.Field) any {
	by := f.CalledBy
	now, ok := list[i].(map[string]any)
	if !ok || by == "" {
		if i < len(old) {
			return old[i]
		}
		return nil
	}
	here, there := called(list, by, now[by]), called(old, by, now[by])
	if len(there) == 1 {
		return there[0]
	}
	// Of several with one name, such as header rules, the first is the first as long as
	// there are as many.
	if len(here) == len(there) {
		for n, e := range here {
			if same, ok := e.(map[string]any); ok && reflect.ValueOf(same).Pointer() == reflect.ValueOf(now).Pointer() {
				return there[n]
			}
		}
	}
	return nil
}

// called returns the objects of a list that have a value in a field.
func called(list []any, by string, value any) (found []any) {
	for _, e := range list {
		if o, ok := e.(map[string]any); ok && o[by] == value {
			found = append(found, e)
		}
	}
	return found
}

// variables returns the texts in a value that have ${ in them.
func variables(v any) (texts []string) {
	switch v := v.(type) {
	case string:
		if strings.Contains(v, "${") {
			texts = append(texts, v)
		}
	case []any:
		for _, e := range v {
			texts = append(texts, variables(e)...)
		}
	case map[string]any:
		for _, e := range v {
			texts = append(texts, variables(e)...)
		}
	}
	return texts
}

// pointerOf returns the JSON pointer (RFC 6901) for a field of the configuration, such as
// proxies.shop.routes[0].path: into the body, if that is the object at the path object,
// else into the configuration.
func pointerOf(field, object string) string {
	rest, ok := strings.CutPrefix(field, object)
	if object == "" || !ok || rest != "" && rest[0] != '.' && rest[0] != '[' {
		rest = field
	}
	pointer := ""
	for rest = strings.TrimPrefix(rest, "."); rest != ""; {
		var s document.Step
		s, rest = document.CutStep(rest)
		if s.Index >= 0 {
			pointer += "/" + strconv.Itoa(s.Index)
			continue
		}
		pointer += "/" + escape(s.Name)
	}
	return pointer
}

// jsonOf writes a JSON value that was read from a body, or changed from one.
func jsonOf(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null") // maps, lists and plain values
	}
	return data
}
