package schema

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"reflect"
	"strconv"
	"strings"

	"headgate/internal/setting/unit"
)

// jsonType is a JSON Schema of the draft 2020-12, as far as it is used.
type jsonType struct {
	Schema      string       `json:"$schema,omitempty"`
	ID          string       `json:"$id,omitempty"`
	Title       string       `json:"title,omitempty"`
	Ref         string       `json:"$ref,omitempty"`
	Description string       `json:"description,omitempty"`
	Type        any          `json:"type,omitempty"`
	Enum        []string     `json:"enum,omitempty"`
	Pattern     string       `json:"pattern,omitempty"`
	Minimum     *int64       `json:"minimum,omitempty"`
	Maximum     *int64       `json:"maximum,omitempty"`
	MaxLength   *int64       `json:"maxLength,omitempty"`
	Default     any          `json:"default,omitempty"`
	Examples    []any        `json:"examples,omitempty"`
	Properties  orderedTypes `json:"properties,omitempty"`
	Patterns    orderedTypes `json:"patternProperties,omitempty"`
	Additional  any          `json:"additionalProperties,omitempty"`
	Names       *jsonType    `json:"propertyNames,omitempty"`
	WriteOnly   bool         `json:"writeOnly,omitempty"`
	Items       *jsonType    `json:"items,omitempty"`
	Required    []string     `json:"required,omitempty"`
	MaxItems    *int64       `json:"maxItems,omitempty"`
	MaxProps    *int64       `json:"maxProperties,omitempty"`
	AnyOf       []*jsonType  `json:"anyOf,omitempty"`
	Defs        orderedTypes `json:"$defs,omitempty"`
}

// orderedTypes is a JSON object that keeps its order.
type orderedTypes []namedType

type namedType struct {
	name string
	typ  *jsonType
}

// MarshalJSON writes the types in their order.
func (o orderedTypes) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, n := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		value, err := json.Marshal(n.typ)
		if err != nil {
			return nil, err
		}
		b.WriteString(strconv.Quote(n.name) + ":")
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// JSONSchema returns the JSON Schema of a configuration, for editors. Every
// type and field needs a comment; the error names one that has none.
func JSONSchema(root *Object, comments *Comments, title string) ([]byte, error) {
	top := &jsonType{Schema: "https://json-schema.org/draft/2020-12/schema", Title: title}
	for i, o := range root.Objects() {
		t, err := objectSchema(o, comments)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			top.Defs = append(top.Defs, namedType{o.Name(), t})
			continue
		}
		top.Description, top.Type, top.Properties = t.Description, t.Type, t.Properties
		top.Required, top.Additional = t.Required, t.Additional
		top.Patterns = orderedTypes{{"^x-", &jsonType{Description: "A place for anchors; it is ignored."}}}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(top); err != nil {
		return nil, err
	}
	return Lines(bytes.TrimSpace(b.Bytes()), lineDepth), nil
}

// lineDepth is how deep values of a JSON Schema have lines of their own: each property has one.
const lineDepth = 4

func objectSchema(o *Object, comments *Comments) (*jsonType, error) {
	description, err := comments.Object(o)
	if err != nil {
		return nil, err
	}
	t := &jsonType{Description: description, Type: []string{"object", "null"}, Additional: false}
	for _, f := range o.Fields {
		ft := typeSchema(f, f.Type)
		if ft.Description, err = comments.Field(f); err != nil {
			return nil, err
		}
		ft.WriteOnly = f.Secret // one that may be a secret is often shown
		if f.HasDefault && !f.fallsBack() {
			ft.Default = plainValue(f.Type, f.Default)
		}
		if f.Example != "" && f.Type.Elem == nil {
			ft.Examples = []any{plainValue(f.Type, f.Example)}
		}
		if f.Required {
			t.Required = append(t.Required, f.Name)
		}
		t.Properties = append(t.Properties, namedType{f.Name, ft})
	}
	return t, nil
}

// plainValue returns the JSON value of a text in a tag.
func plainValue(t *Type, text string) any {
	switch t.Kind {
	case Bool:
		return text == "true"
	case Int:
		n, _ := strconv.Atoi(text)
		return n
	}
	return text
}

// variable is the pattern of a value that holds ${…}, which only Load can read.
const variable = `\$\{`

// typeSchema returns the schema of a value of type t, which is f's or that of
// its elements.
func typeSchema(f *Field, t *Type) *jsonType {
	s := &jsonType{}
	switch t.Kind {
	case Struct:
		s.Ref = "#/$defs/" + t.Object.Name()
	case List:
		s.Type, s.Items, s.MaxItems = "array", typeSchema(f, t.Elem), f.Max
	case Map:
		s.Type, s.Additional, s.MaxProps = "object", typeSchema(f, t.Elem), f.Max
		s.Names = &jsonType{Pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"}
	case Bool:
		return withVariable(&jsonType{Type: "boolean"})
	case Int:
		return withVariable(&jsonType{Type: "integer", Minimum: f.Min, Maximum: f.Max})
	case Text:
		if len(f.Enum) > 0 {
			return withVariable(&jsonType{Type: "string", Enum: f.Enum})
		}
		s.Type = "string"
		if t == f.Type {
			s.MaxLength = f.Max
		}
	case Scalar:
		return withVariable(scalarSchema(t.Go))
	}
	return s
}

// withVariable lets a value be a text with a variable in it.
func withVariable(t *jsonType) *jsonType {
	return &jsonType{AnyOf: []*jsonType{t, {Type: "string", Pattern: variable}}}
}

func scalarSchema(t reflect.Type) *jsonType {
	switch t {
	case reflect.TypeFor[unit.Duration]():
		return &jsonType{Type: []string{"string", "integer"}, Pattern: `^(0|([0-9]+d)?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))*)$`}
	case reflect.TypeFor[unit.Size]():
		return &jsonType{Type: []string{"string", "integer"}, Pattern: `^[0-9]+(\.[0-9]+)? ?([KkMmGgTt]?[Ii]?[Bb])?$`}
	case reflect.TypeFor[unit.Percent]():
		return &jsonType{Type: []string{"string", "integer"}, Pattern: `^[0-9]+ ?%?$`}
	case reflect.TypeFor[unit.Switch]():
		return &jsonType{Type: "boolean"}
	case reflect.TypeFor[netip.AddrPort]():
		return &jsonType{Type: "string", Pattern: `^$|:[0-9]{1,5}$`}
	case reflect.TypeFor[unit.AddressRange]():
		return &jsonType{Type: "string", Pattern: `^$|:[0-9]{1,5}(-[0-9]{1,5})?$`}
	}
	if f, ok := reflect.New(t).Interface().(Formed); ok {
		types, pattern := f.JSONForm()
		return &jsonType{Type: types, Pattern: pattern}
	}
	if s, ok := reflect.Zero(t).Interface().(interface{ JSONForm() ([]string, string) }); ok {
		types, pattern := s.JSONForm()
		return &jsonType{Type: types, Pattern: pattern}
	}
	return &jsonType{Type: "string"}
}

// Formed is a scalar that describes its format for editors.
type Formed interface {
	// JSONForm returns the JSON types that a value may have, and the pattern
	// of those that are strings.
	JSONForm() (types []string, pattern string)
}

// typeWord returns the name of a type on the reference page.
func typeWord(t *Type) string {
	switch t.Kind {
	case Bool:
		return "boolean"
	case Int:
		return "integer"
	case Text:
		return "string"
	case Struct:
		return "[" + t.Object.Name() + "](#" + strings.ToLower(t.Object.Name()) + ")"
	case List:
		return "list of " + typeWord(t.Elem)
	case Map:
		return "map of name to " + typeWord(t.Elem)
	}
	switch t.Go {
	case reflect.TypeFor[unit.Duration]():
		return "duration"
	case reflect.TypeFor[unit.Size]():
		return "size"
	case reflect.TypeFor[unit.Percent]():
		return "percentage"
	case reflect.TypeFor[unit.Switch]():
		return "boolean"
	case reflect.TypeFor[netip.AddrPort]():
		return "ip:port"
	case reflect.TypeFor[unit.AddressRange]():
		return "ip:port or ip:first-last"
	}
	return "string"
}
