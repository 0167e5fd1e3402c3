package config

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"reflect"

	"headgate/internal/schema"
)

// ETag returns the entity tag of an object of a kind: two objects have the same one if they
// are equal, however they are written. Name is "" for the object of a single kind. It
// depends on the text of ${…} references, not on their values. It is "" if there is no such
// object.
func (c *Config) ETag(kind, name string) string {
	form, ok := c.Canonical(kind, name, false)
	if !ok {
		return ""
	}
	h := sha256.New()
	h.Write([]byte(kind + "\x00" + name + "\x00"))
	h.Write(form)
	return tag(h)
}

// Canonical returns the canonical form of an object as JSON: its document's settings
// without defaults, and with ${…} in place of its value. Mask replaces secrets by
// schema.Masked, for readers without access to them, and adds NAME_set: true for each. It
// returns false if there is no such object.
func (c *Config) Canonical(kind, name string, mask bool) (form []byte, ok bool) {
	k := KindOf(kind)
	if k == nil || k.Single != (name == "") {
		return nil, false
	}
	path, v := kind, reflect.Value{}
	if k.Single {
		v = reflect.ValueOf(c).Elem().FieldByIndex(model().config.Field(kind).Index)
	} else if o := k.Find(c, name); o != nil {
		path, v = schema.JoinPath(kind, name), reflect.ValueOf(o).Elem()
	} else {
		return nil, false
	}
	return k.Schema().AppendJSON(nil, v, path, schema.Form{Written: c.Written, Mask: mask, Flag: mask}), true
}

// tag returns an entity tag as HTTP writes it (RFC 9110, section 8.8.3).
func tag(h hash.Hash) string {
	return `"` + hex.EncodeToString(h.Sum(nil)[:16]) + `"`
}
