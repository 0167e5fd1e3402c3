package config

import (
	"fmt"
	"net/netip"
	"reflect"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"

	"headgate/internal/schema"
	"headgate/internal/setting/unit"
)

// isNull reports whether a value is absent: nothing, ~ or null.
func isNull(n *yaml.Node) bool {
	if n = resolved(n); n.Kind != yaml.ScalarNode || n.Style&quotedStyles != 0 {
		return false
	}
	if n.Style&yaml.TaggedStyle != 0 {
		return n.Tag == "!!null"
	}
	switch n.Value {
	case "", "~", "null", "Null", "NULL":
		return true
	}
	return false
}

// plainTag reports whether a value has no tag of its own, or one that says what
// can be seen anyway.
func plainTag(n *yaml.Node) bool {
	if n.Style&yaml.TaggedStyle == 0 {
		return true
	}
	switch n.Kind {
	case yaml.MappingNode:
		return n.Tag == "!!map"
	case yaml.SequenceNode:
		return n.Tag == "!!seq"
	}
	return n.Tag == "!!str"
}

// number is what YAML takes for a number.
var number = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9]*)?)([eE][-+]?[0-9]+)?$|^0[xob][0-9a-fA-F_]+$|^[-+]?\.(inf|Inf|INF)$|^\.(nan|NaN|NAN)$`)

// look is what a plain value looks like.
type look uint8

const (
	looksText look = iota
	looksNumber
	looksBool
)

// lookOf returns what a scalar that is not null looks like.
func lookOf(n *yaml.Node) look {
	if n.Style&(quotedStyles|yaml.TaggedStyle) != 0 {
		return looksText
	}
	switch n.Value {
	case "true", "True", "TRUE", "false", "False", "FALSE":
		return looksBool
	}
	if c := n.Value[0]; (c < '0' || c > '9') && strings.IndexByte("+-.", c) < 0 {
		return looksText
	}
	if number.MatchString(n.Value) {
		return looksNumber
	}
	return looksText
}

// found names what stands at n, for a message.
func found(n *yaml.Node) string {
	switch {
	case !plainTag(n):
		return fmt.Sprintf("the tag %s", n.Tag)
	case n.Kind == yaml.MappingNode:
		return "an object"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case isNull(n):
		return "nothing"
	}
	switch lookOf(n) {
	case looksNumber:
		return "the number " + shorten(n.Value)
	case looksBool:
		return "the boolean " + n.Value
	}
	return fmt.Sprintf("the text %q", shorten(n.Value))
}

// shorten cuts a long value for a message.
func shorten(text string) string {
	const longest = 60
	if len(text) <= longest {
		return text
	}
	cut := longest
	for cut > 0 && text[cut]&0xc0 == 0x80 {
		cut--
	}
	return text[:cut] + "…"
}

// wanted names what a plain value of type t looks like.
func wanted(t *schema.Type) string {
	switch t.Kind {
	case schema.Bool:
		return "true or false"
	case schema.Int:
		return "a whole number"
	case schema.Text:
		return "a text"
	}
	switch t.Go {
	case reflect.TypeFor[unit.Duration]():
		return `a duration like "30s"`
	case reflect.TypeFor[unit.Size]():
		return `a size like "10MiB"`
	case reflect.TypeFor[unit.Switch]():
		return "true or false"
	case reflect.TypeFor[netip.AddrPort]():
		return `an address like "0.0.0.0:8080"`
	}
	return "a text"
}

// wrongType tells of a scalar that does not look like what type t wants.
func wrongType(n *yaml.Node, t *schema.Type) *fault {
	switch l := lookOf(n); {
	case t.Kind == schema.Text && l != looksText:
		return wrong(fmt.Sprintf("found %s, want a text", found(n)), fmt.Sprintf("put it in quotes: %q", n.Value))
	case t.Kind == schema.Bool && l != looksBool:
		remedy := ""
		switch strings.ToLower(n.Value) {
		case "yes", "on", "true", "1", "y":
			remedy = "write true"
		case "no", "off", "false", "0", "n":
			remedy = "write false"
		}
		return wrong(fmt.Sprintf("found %s, want true or false", found(n)), remedy)
	case t.Kind == schema.Int && l != looksNumber:
		return wrong(fmt.Sprintf("found %s, want a whole number", found(n)), "")
	case t.Kind == schema.Scalar && l == looksBool && t.Go != reflect.TypeFor[unit.Switch]():
		return wrong(fmt.Sprintf("found %s, want %s", found(n), wanted(t)), "")
	}
	return nil
}

// asObject returns how a scalar in the place of an object is written, if that can
// be told: a switch, or the one field that has to be there.
func asObject(n *yaml.Node, o *schema.Object) string {
	if n.Kind != yaml.ScalarNode {
		return ""
	}
	var required []*schema.Field
	for _, f := range o.Fields {
		if f.Required {
			required = append(required, f)
		}
	}
	on := strings.EqualFold(n.Value, "true")
	switch {
	case lookOf(n) != looksBool && len(required) == 1 && required[0].Type.Elem == nil && required[0].Type.Object == nil:
		return fmt.Sprintf("write {%s: %s}", required[0].Name, shorten(n.Value))
	case lookOf(n) != looksBool:
		return ""
	case on && len(required) == 0:
		return "write {} to have it with its defaults"
	case !on && o.Field("enabled") != nil:
		return "write {enabled: false} to switch it off"
	}
	return ""
}
