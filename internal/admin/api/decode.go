package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"headgate/internal/schema"
)

// The bounds of a body.
const (
	maxBody     = 1 << 20
	maxDepth    = 32
	maxMistakes = 20
	// maxPublicBody is the maximum body of a client that has not signed in.
	maxPublicBody = 16 << 10
	maxText       = 64 << 10
)

// masked replaces a secret in responses. A secret with this value in a request stays
// unchanged.
const masked = "********"

// readBody returns the JSON value of a body. A POST without a body has an object
// without fields: a call that needs none can be made without one.
func readBody(w http.ResponseWriter, rq *http.Request, patch bool, limit int64) (any, error) {
	if rq.Method == http.MethodPost && rq.ContentLength == 0 {
		return map[string]any{}, nil
	}
	limit = cmp.Or(limit, maxBody)
	kind, parameters, err := mime.ParseMediaType(rq.Header.Get("Content-Type"))
	charset := parameters["charset"]
	switch {
	case err != nil, kind != "application/json" && !(patch && kind == "application/merge-patch+json"),
		charset != "" && !strings.EqualFold(charset, "utf-8"):
		return nil, refuse("media_type", "", "the body has the type "+strconv.Quote(rq.Header.Get("Content-Type")), "send it as application/json")
	case rq.Header.Get("Content-Encoding") != "":
		return nil, refuse("media_type", "", "the body is encoded", "send it without a Content-Encoding")
	case rq.ContentLength > limit:
		return nil, tooLarge(limit)
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, rq.Body, limit))
	if tooMuch := (*http.MaxBytesError)(nil); errors.As(err, &tooMuch) {
		return nil, tooLarge(limit)
	}
	if err != nil {
		return nil, refuse("invalid_json", "", "the body did not come whole", "")
	}
	return parse(data)
}

func tooLarge(limit int64) error {
	return refuse("too_large", "", fmt.Sprintf("the body is larger than %d bytes", limit), "")
}

// parse returns the value of a JSON text. It rejects what parsers interpret differently:
// duplicate names, invalid UTF-8, and data after the value.
func parse(data []byte) (any, error) {
	if !utf8.Valid(data) {
		return nil, refuse("invalid_json", "", "the body is not UTF-8", "")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := parseValue(d, "", 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, refuse("invalid_json", "", "unexpected data after the JSON value", "")
	}
	return v, nil
}

func parseValue(d *json.Decoder, at string, depth int) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, refuse("invalid_json", at, "the body is not valid JSON: "+brief(err), "")
	}
	open, ok := token.(json.Delim)
	if !ok {
		return token, nil
	}
	if depth >= maxDepth {
		return nil, refuse("invalid_json", "", fmt.Sprintf("the body is more than %d levels deep", maxDepth), "")
	}
	if open == '[' {
		list := []any{}
		for d.More() {
			v, err := parseValue(d, at+"/"+strconv.Itoa(len(list)), depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, closing(d, at)
	}
	object := map[string]any{}
	for d.More() {
		key, err := d.Token()
		name, ok := key.(string)
		if err != nil || !ok {
			return nil, refuse("invalid_json", at, "the body is not valid JSON", "")
		}
		inner := at + "/" + escape(name)
		if _, twice := object[name]; twice {
			return nil, refuse("invalid_json", inner, "duplicate name in an object", "")
		}
		if object[name], err = parseValue(d, inner, depth+1); err != nil {
			return nil, err
		}
	}
	return object, closing(d, at)
}

func closing(d *json.Decoder, at string) error {
	if _, err := d.Token(); err != nil {
		return refuse("invalid_json", at, "the body is not valid JSON: "+brief(err), "")
	}
	return nil
}

// brief returns an error of the JSON reader without what it may repeat of the body.
func brief(err error) string {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return "it ends too early"
	}
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return fmt.Sprintf("at byte %d", syntax.Offset)
	}
	return "it cannot be read"
}

// escape writes a name as a part of a JSON pointer (RFC 6901, section 3).
func escape(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(clean(name))
}

// clean returns what a client has sent as a name, cut short and as UTF-8.
func clean(name string) string {
	return strings.ToValidUTF8(name[:min(len(name), 128)], "")
}

// mergePatch applies a patch to a value (RFC 7396).
func mergePatch(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	object, ok := target.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	for name, v := range changes {
		if v == nil {
			delete(object, name)
			continue
		}
		object[name] = mergePatch(object[name], v)
	}
	return object
}

// checker holds a value against a type and collects what is wrong.
type checker struct{ mistakes []mistake }

// fill checks a value and returns a pointer to a struct that was filled from it.
// Fields that are only read are left out of it, and so are masked secrets.
func fill(v any, o *schema.Object) (any, error) {
	c := &checker{}
	c.object(v, o, "")
	if len(c.mistakes) > 0 {
		first := c.mistakes[0]
		p := refuse(first.Code, first.Pointer, first.Detail, first.Remedy)
		if len(c.mistakes) > 1 {
			p.Problems = c.mistakes
		}
		return nil, p
	}
	into := reflect.New(o.Go)
	o.Fill(into.Elem())
	data, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(data, into.Interface())
	}
	if err != nil {
		return nil, refuse("invalid", "", "a value of the body cannot be read", "")
	}
	return into.Interface(), nil
}

// full reports whether the maximum number of mistakes has been collected.
func (c *checker) full() bool { return len(c.mistakes) >= maxMistakes }

func (c *checker) add(code, at, detail, remedy string) {
	if len(c.mistakes) < maxMistakes {
		c.mistakes = append(c.mistakes, mistake{code, at, detail, remedy})
	}
}

func (c *checker) object(v any, o *schema.Object, at string) {
	object, ok := v.(map[string]any)
	if !ok {
		c.add("invalid", at, "must be an object", "")
		return
	}
	keys := make([]string, 0, len(object))
	for name := range object {
		keys = append(keys, name)
	}
	slices.Sort(keys)
	for _, name := range keys {
		if c.full() {
			return
		}
		name = takeAlias(object, o, name)
		f := o.Field(name)
		inner := at + "/" + escape(name)
		switch {
		case f == nil:
			remedy := ""
			if near := schema.Nearest(name, o.Names()); near != "" {
				remedy = "did you mean " + strconv.Quote(near) + "?"
			}
			c.add("unknown_field", inner, "the field is not known", remedy)
		case tagged(f, "readonly"), object[name] == nil, tagged(f, "writeonly") && object[name] == masked:
			delete(object, name)
		default:
			c.value(object[name], f, f.Type, inner)
		}
	}
	for _, f := range o.Fields {
		if _, there := object[f.Name]; f.Required && !there {
			c.add("invalid", at+"/"+f.Name, "the field is required", "")
		}
	}
}

// takeAlias returns the name that a field has now, under which it puts the value, for one
// that it had before.
func takeAlias(object map[string]any, o *schema.Object, name string) string {
	now := o.Was[name]
	if _, twice := object[now]; now == "" || twice {
		return name
	}
	object[now] = object[name]
	delete(object, name)
	return now
}

// tagged reports whether a field has a tag with the value true.
func tagged(f *schema.Field, tag string) bool {
	sf, ok := f.Owner.FieldByName(f.GoName)
	return ok && sf.Tag.Get(tag) == "true"
}

// value checks one value of a field's type t, or of its elements.
func (c *checker) value(v any, f *schema.Field, t *schema.Type, at string) {
	switch t.Kind {
	case schema.Struct:
		c.object(v, t.Object, at)
	case schema.List:
		list, ok := v.([]any)
		if !ok {
			c.add("invalid", at, "must be a list", "")
			return
		}
		c.bounds(int64(len(list)), f, at, "entries")
		for i, e := range list {
			c.value(e, f, t.Elem, at+"/"+strconv.Itoa(i))
		}
	case schema.Map:
		entries, ok := v.(map[string]any)
		if !ok {
			c.add("invalid", at, "must be an object", "")
			return
		}
		c.bounds(int64(len(entries)), f, at, "entries")
		for name, e := range entries {
			c.value(e, f, t.Elem, at+"/"+escape(name))
		}
	case schema.Bool:
		if _, ok := v.(bool); !ok {
			c.add("invalid", at, "must be true or false", "")
		}
	case schema.Int:
		number, _ := v.(json.Number)
		n, err := strconv.ParseInt(string(number), 10, t.Go.Bits())
		if err != nil {
			c.add("invalid", at, "must be an integer", f.Bounds())
			return
		}
		c.bounds(n, f, at, "")
	case schema.Number:
		if _, ok := v.(json.Number); !ok {
			c.add("invalid", at, "must be a number", "")
		}
	case schema.Text:
		c.text(v, f, t, at)
	case schema.Scalar:
		text, ok := v.(string)
		if !ok || len(text) > maxText || t.SetText(reflect.New(t.Go).Elem(), text) != nil {
			c.add("invalid", at, "the text cannot be read", form(t))
		}
	}
}

func (c *checker) text(v any, f *schema.Field, t *schema.Type, at string) {
	text, ok := v.(string)
	switch {
	case !ok:
		c.add("invalid", at, "must be a string", "")
	case len(text) > maxText && (f.Max == nil || t != f.Type || int64(len(text)) > *f.Max):
		c.add("invalid", at, fmt.Sprintf("the text is longer than %d bytes", maxText), "")
	case len(f.Enum) > 0 && !slices.Contains(f.Enum, text):
		c.add("invalid", at, "the value is not known", "write "+strings.Join(f.Enum, ", "))
	case t == f.Type && len(f.Enum) == 0:
		c.bounds(int64(len(text)), f, at, "bytes")
	}
}

// bounds checks a number, or how many there are of something.
func (c *checker) bounds(n int64, f *schema.Field, at, of string) {
	if f.Min != nil && n < *f.Min || f.Max != nil && n > *f.Max {
		c.add("invalid", at, strings.TrimSpace(fmt.Sprintf("%d %s is out of bounds", n, of)), f.Bounds())
	}
}

// form returns a hint for the format of a string type.
func form(t *schema.Type) string {
	switch t.Go.String() {
	case "time.Time":
		return "write a time as 2026-01-31T12:00:00Z"
	case "netip.Prefix":
		return "write a network as 192.0.2.0/24"
	}
	return ""
}
