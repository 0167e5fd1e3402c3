package api

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"headgate/internal/config"
	"headgate/internal/config/document"
	"headgate/internal/schema"
)

// told are the fields of an answer that say how an object stands. They may be sent back,
// and do nothing. A kind that has a field of such a name keeps it.
var told = []string{"name", "origin", "state", "etag", "servers", "issues", "recent", "last_change", "plan"}

// keepTree keeps a body that the configuration is going to check. Fields that it does
// not know are refused here, with where they are.
func (c *call) keepTree(v any) error {
	tree, ok := v.(map[string]any)
	if !ok {
		return refuse("invalid", "", "an object is wanted here", "")
	}
	k := c.row.kind
	name, named := tree["name"]
	for _, field := range told {
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
		return refuse("invalid", "/name", "a name is wanted here", "")
	case c.rq.Method == "POST":
		c.newName = text
	case named && (!isText || text != want):
		return refuse("invalid", "/name", "the name is another than that of the path", "rename the object by POST …/rename")
	}
	return nil
}

// known refuses the names in v that o does not know. The NAME_set of a secret is taken
// out.
func (c *checker) known(v any, o *schema.Object, at string) {
	object, ok := v.(map[string]any)
	if !ok {
		return // the configuration says what is wanted
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		f := o.Field(name)
		if f == nil {
			if secret := o.Field(strings.TrimSuffix(name, schema.FlagSuffix)); secret != nil && secret.Secret {
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
		inner := at + "/" + escape(name)
		if f.Secret && value == masked {
			if old[name] == nil || old[name] == masked {
				return refuse("invalid", inner, "there is no secret here that could stay", "send the secret")
			}
			object[name] = old[name]
			continue
		}
		if err := unmaskIn(value, old[name], f, f.Type, inner); err != nil {
			return err
		}
	}
	return nil
}

func unmaskIn(v, was any, f *schema.Field, t *schema.Type, at string) error {
	switch t.Kind {
	case schema.Struct:
		return unmask(v, was, t.Object, at)
	case schema.Map:
		entries, _ := v.(map[string]any)
		old, _ := was.(map[string]any)
		for name, e := range entries {
			if err := unmaskIn(e, old[name], f, t.Elem, at+"/"+escape(name)); err != nil {
				return err
			}
		}
	case schema.List:
		list, _ := v.([]any)
		old, _ := was.([]any)
		for i, e := range list {
			if err := unmaskIn(e, counterpart(e, i, old, f), f, t.Elem, at+"/"+strconv.Itoa(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// counterpart returns the element of an older list that e is.
func counterpart(e any, i int, old []any, f *schema.Field) any {
	now, ok := e.(map[string]any)
	if by := f.CalledBy; ok && by != "" {
		for _, o := range old {
			if was, ok := o.(map[string]any); ok && was[by] == now[by] {
				return o
			}
		}
		return nil
	}
	if i < len(old) {
		return old[i]
	}
	return nil
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

// pointerOf returns the JSON pointer into the body of a row for a field of the
// configuration, such as proxies.shop.routes[0].path. A field that the body has not is
// returned as it is.
func pointerOf(field, object string) string {
	rest, ok := strings.CutPrefix(field, object)
	if object == "" || !ok {
		return field
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
