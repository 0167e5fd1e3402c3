package schema

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
)

// Masked replaces a secret in output.
const Masked = "********"

// FlagSuffix is appended to the name of a secret by Form.Flag.
const FlagSuffix = "_set"

// Form configures how values are written as JSON. The zero Form writes them unchanged,
// including secrets.
type Form struct {
	// Written returns the text in the document of the field with this path, if it differs
	// from the value: "${file:/run/secrets/key}". It may be nil.
	Written func(path string) (text string, ok bool)
	// Mask writes Masked in the place of secrets.
	Mask bool
	// Flag writes a field NAME_set for each secret NAME that is set.
	Flag bool
}

// Hider is an object that determines which of its fields with MaybeSecret are secrets.
// Hides does not change the object.
type Hider interface{ Hides(field string) bool }

// Hides reports whether the value of a field of v, an object, is a secret.
func Hides(f *Field, v reflect.Value) bool {
	if !f.MaybeSecret {
		return f.Secret
	}
	h, ok := v.Interface().(Hider)
	return ok && h.Hides(f.Name)
}

// AppendJSON appends the canonical form of v, an object of o's type at path: JSON with the
// fields in their order, without optional fields that have their default. Equal objects
// have the same form, however they are written.
func (o *Object) AppendJSON(out []byte, v reflect.Value, path string, form Form) []byte {
	out = append(out, '{')
	first := true
	for _, f := range o.Fields {
		value := v.FieldByIndex(f.Index)
		if !f.Required && o.isDefault(f, value) {
			continue
		}
		if !first {
			out = append(out, ',')
		}
		first = false
		out = append(strconv.AppendQuote(out, f.Name), ':')
		secret := f.Secret || f.MaybeSecret && !value.IsZero() && Hides(f, v) && !form.written(JoinPath(path, f.Name))
		if secret && f.MaybeSecret && form.Mask {
			out = appendText(out, Masked)
		} else {
			out = f.AppendJSON(out, value, JoinPath(path, f.Name), form)
		}
		if form.Flag && secret && !value.IsZero() {
			out = append(strconv.AppendQuote(append(out, ','), f.Name+FlagSuffix), ":true"...)
		}
	}
	return append(out, '}')
}

// written reports whether the document has ${…} in the field with a path, which may be
// shown in place of the value.
func (f Form) written(path string) bool {
	if f.Written == nil {
		return false
	}
	_, ok := f.Written(path)
	return ok
}

// isDefault reports whether a field's value is what it has when it is absent.
func (o *Object) isDefault(f *Field, v reflect.Value) bool {
	fallback := o.template.FieldByIndex(f.Index)
	switch {
	case f.Type.Pointer, f.Type.Kind == Map:
		return v.IsNil()
	case f.Type.Kind == List && f.Type.Optional():
		return v.IsNil()
	case f.Type.Kind == List:
		return v.Len() == 0
	case f.Type.Kind == Struct:
		return reflect.DeepEqual(v.Interface(), fallback.Interface())
	}
	return SameValue(v, fallback)
}

// Optional reports whether an empty value of the type differs from an absent one: an empty
// list disables what would be inherited.
func (t *Type) Optional() bool { return t.Go.Implements(reflect.TypeFor[interface{ Off() bool }]()) }

// SameValue reports whether two plain values or lists of one type are the same.
func SameValue(a, b reflect.Value) bool {
	if a.Comparable() && b.Comparable() {
		return a.Equal(b)
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// Hidden returns f as a field whose value is a secret.
func (f *Field) Hidden() *Field {
	hidden := *f
	hidden.Secret = true
	return &hidden
}

// AppendJSON appends the canonical form of a value of f, which is at path.
func (f *Field) AppendJSON(out []byte, v reflect.Value, path string, form Form) []byte {
	if f.Secret && form.Mask && !v.IsZero() && f.Type.Kind != Map {
		return appendText(out, Masked)
	}
	return f.appendType(out, f.Type, v, path, form)
}

// masks reports whether an element of f's type is a secret that is not shown: of a map
// of secrets only the names are.
func (f *Field) masks(t *Type, form Form) bool {
	return f.Secret && form.Mask && t != f.Type && t.Elem == nil
}

// AppendElement appends the canonical form of an element of the list or map f.
func (f *Field) AppendElement(out []byte, v reflect.Value, path string, form Form) []byte {
	return f.appendType(out, f.Type.Elem, v, path, form)
}

func (f *Field) appendType(out []byte, t *Type, v reflect.Value, path string, form Form) []byte {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return append(out, "null"...)
		}
		v = v.Elem()
	}
	if f.masks(t, form) && !v.IsZero() {
		return appendText(out, Masked)
	}
	switch t.Kind {
	case Struct:
		return t.Object.AppendJSON(out, v, path, form)
	case List:
		out = append(out, '[')
		for i := range v.Len() {
			if i > 0 {
				out = append(out, ',')
			}
			out = f.appendType(out, t.Elem, v.Index(i), fmt.Sprintf("%s[%d]", path, i), form)
		}
		return append(out, ']')
	case Map:
		return f.appendMap(out, t, v, path, form)
	}
	if form.Written != nil {
		if text, ok := form.Written(path); ok {
			return appendText(out, text)
		}
	}
	return appendScalar(out, t, v)
}

func (f *Field) appendMap(out []byte, t *Type, v reflect.Value, path string, form Form) []byte {
	names := make([]string, 0, v.Len())
	for _, key := range v.MapKeys() {
		names = append(names, key.String())
	}
	slices.Sort(names)
	out = append(out, '{')
	for i, name := range names {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendText(out, name), ':')
		out = f.appendType(out, t.Elem, v.MapIndex(reflect.ValueOf(name)), JoinPath(path, name), form)
	}
	return append(out, '}')
}

// appendScalar appends a plain value: booleans and whole numbers as they are,
// everything else as the text that a document has.
func appendScalar(out []byte, t *Type, v reflect.Value) []byte {
	switch t.Kind {
	case Bool:
		return strconv.AppendBool(out, v.Bool())
	case Int:
		return strconv.AppendInt(out, v.Int(), 10)
	case Text:
		return appendText(out, v.String())
	}
	if m, ok := v.Interface().(json.Marshaler); ok {
		if data, err := m.MarshalJSON(); err == nil {
			return append(out, data...)
		}
	}
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		if text, err := m.MarshalText(); err == nil {
			return appendText(out, string(text))
		}
	}
	return appendText(out, fmt.Sprint(v.Interface()))
}

// appendText appends a JSON string.
func appendText(out []byte, text string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(text); err != nil {
		return append(out, `""`...)
	}
	return append(out, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}
