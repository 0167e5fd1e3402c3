// Package header holds the headers of a message: an ordered list of (name, value) views,
// with a small id for every name that the proxy itself uses. It does not parse or write
// messages; internal/proto/http1 and the fronts do.
//
// Names and values are strings that may refer to a connection's buffer. Such a view is
// valid until the end of its exchange: copy a name or value with strings.Clone to keep it
// longer. Nothing here allocates unless the list outgrows every previous size.
package header

// Field is one header or trailer field, in the order and spelling in which it
// was received.
type Field struct {
	// Name is the field name as received or, for fields of our own, as it will
	// be sent. Comparison is by ID, or without regard to case when ID is Other.
	Name string
	// Value is the field value without leading and trailing white space.
	Value string
	// ID is the well-known name, or Other.
	ID ID
}

// Is reports whether f has the given name, in any case.
func (f *Field) Is(name string) bool {
	return len(f.Name) == len(name) && equalFold(f.Name, name)
}

// List is an ordered list of fields. The zero value is an empty list. It is not
// safe for use by several goroutines at once.
type List struct {
	fields []Field
	seen   set
}

// Len returns the number of fields.
func (l *List) Len() int { return len(l.fields) }

// Clip releases memory beyond the fields that exist.
func (l *List) Clip() {
	if len(l.fields) < cap(l.fields) {
		l.fields = append(make([]Field, 0, len(l.fields)), l.fields...)
	}
}

// All returns the fields in order. The slice is the list's own: it is valid
// until the next change, and its elements may be edited but for their ID.
func (l *List) All() []Field { return l.fields }

// Reset empties the list and keeps its memory.
func (l *List) Reset() {
	clear(l.fields)
	l.fields = l.fields[:0]
	l.seen = set{}
}

// Has reports in constant time whether a field with this well-known name is in
// the list. It must not be called with Other.
func (l *List) Has(id ID) bool { return l.seen.has(id) }

// Get returns the value of the first field with this well-known name, or "".
func (l *List) Get(id ID) string {
	if !l.seen.has(id) {
		return ""
	}
	for i := range l.fields {
		if l.fields[i].ID == id {
			return l.fields[i].Value
		}
	}
	return ""
}

// Lookup returns the value of the first field with this name, in any case, and
// whether there is one.
func (l *List) Lookup(name string) (string, bool) {
	if i := l.find(Lookup(name), name, 0); i >= 0 {
		return l.fields[i].Value, true
	}
	return "", false
}

// Count returns how many fields have this well-known name.
func (l *List) Count(id ID) int {
	n := 0
	if l.seen.has(id) {
		for i := range l.fields {
			if l.fields[i].ID == id {
				n++
			}
		}
	}
	return n
}

// Add appends a field with a well-known name, in its canonical spelling.
func (l *List) Add(id ID, value string) {
	l.seen.add(id)
	l.fields = append(l.fields, Field{Name: id.String(), Value: value, ID: id})
}

// AddField appends a field by name and keeps the spelling of the name.
func (l *List) AddField(name, value string) {
	l.AddKnown(Lookup(name), name, value)
}

// AddKnown appends a field whose id the caller has already looked up.
func (l *List) AddKnown(id ID, name, value string) {
	l.seen.add(id)
	l.fields = append(l.fields, Field{Name: name, Value: value, ID: id})
}

// Set sets the first field of this well-known name to the value and removes
// the others, or appends a field if there is none.
func (l *List) Set(id ID, value string) { l.set(id, id.String(), value) }

// SetKnown is Set by name, for one whose id the caller has already looked up.
func (l *List) SetKnown(id ID, name, value string) { l.set(id, name, value) }

func (l *List) set(id ID, name, value string) {
	first := l.find(id, name, 0)
	if first < 0 {
		l.AddKnown(id, name, value)
		return
	}
	l.fields[first].Value = value
	if l.find(id, name, first+1) < 0 {
		return
	}
	kept := false
	l.DeleteFunc(func(f *Field) bool {
		if f.ID != id || id == Other && !f.Is(name) {
			return false
		}
		drop := kept
		kept = true
		return drop
	})
}

// find returns the index of the first field of this name from an index on, -1 if
// there is none.
func (l *List) find(id ID, name string, from int) int {
	if id != Other && !l.seen.has(id) {
		return -1
	}
	for i := from; i < len(l.fields); i++ {
		if f := &l.fields[i]; f.ID == id && (id != Other || f.Is(name)) {
			return i
		}
	}
	return -1
}

// Del removes every field with this well-known name.
func (l *List) Del(id ID) {
	if l.seen.has(id) {
		l.DeleteFunc(func(f *Field) bool { return f.ID == id })
	}
}

// DelField removes every field with this name, in any case.
func (l *List) DelField(name string) {
	id := Lookup(name)
	if id != Other {
		l.Del(id)
		return
	}
	l.DeleteFunc(func(f *Field) bool { return f.ID == Other && f.Is(name) })
}

// DeleteFunc removes the fields for which drop returns true and keeps the order
// of the others. drop may edit the value of a field it keeps.
func (l *List) DeleteFunc(drop func(*Field) bool) {
	first := 0
	for first < len(l.fields) && !drop(&l.fields[first]) {
		first++
	}
	if first == len(l.fields) {
		return
	}
	kept := first
	for i := first + 1; i < len(l.fields); i++ {
		if f := &l.fields[i]; !drop(f) {
			l.fields[kept] = *f
			kept++
		}
	}
	clear(l.fields[kept:])
	l.fields, l.seen = l.fields[:kept], set{}
	for i := range l.fields {
		l.seen.add(l.fields[i].ID)
	}
}

// DeleteKnown removes the fields with a well-known name that is set in known, but for
// those of kept, and the others for which drop returns true. kept may be Other, for
// none.
func (l *List) DeleteKnown(kept ID, known *[256]bool, drop func(*Field) bool) {
	n := 0
	for i := range l.fields {
		f := &l.fields[i]
		if f.ID == Other {
			if drop(f) {
				continue
			}
		} else if known[f.ID] && f.ID != kept {
			l.seen.remove(f.ID)
			continue
		}
		if n != i {
			l.fields[n] = *f
		}
		n++
	}
	clear(l.fields[n:])
	l.fields = l.fields[:n]
}

// CopyTo replaces the fields of dst by those of l; the views are shared.
func (l *List) CopyTo(dst *List) {
	dst.fields = append(dst.fields[:0], l.fields...)
	dst.seen = l.seen
}

// set is a bit set over ID.
type set [2]uint64

func (s *set) add(id ID)      { s[id>>6&1] |= 1 << (id & 63) }
func (s *set) remove(id ID)   { s[id>>6&1] &^= 1 << (id & 63) }
func (s *set) has(id ID) bool { return s[id>>6&1]&(1<<(id&63)) != 0 }

// equalFold compares two strings of equal length without regard to ASCII case.
func equalFold(a, b string) bool {
	for i := 0; i < len(a); i++ {
		if lower(a[i]) != lower(b[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// EqualFold compares two strings without regard to ASCII case, as field names,
// codings and connection options are compared (RFC 9110, section 5.1).
func EqualFold(a, b string) bool { return len(a) == len(b) && equalFold(a, b) }
