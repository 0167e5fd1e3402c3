package exchange

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"sync"
)

// Keep carries state over from the plan before: what was kept for the same kind of
// thing with the same settings, or else what open makes. The key is made of the
// settings themselves, whole, so that none of their fields can be forgotten: state
// that some of them do not matter to gets a smaller value for settings. Whose the
// state is, such as Env.Scope, is part of the settings or of the kind.
func Keep[T Kept](env Env, kind string, settings any, open func() T) T {
	room := keys.Get().(*[]byte)
	*room = appendKey(append(append((*room)[:0], kind...), '\n'), reflect.ValueOf(settings))
	key := string(*room)
	keys.Put(room)
	return env.Keep(key, func() Kept { return open() }).(T)
}

// keys are the buffers that keys are made in: a large configuration has very many of them.
var keys = sync.Pool{New: func() any { b := make([]byte, 0, 1<<10); return &b }}

// appendKey encodes a value so that different ones have different encodings. Pointers are
// encoded as their targets.
func appendKey(b []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Invalid:
		return append(b, "nil"...)
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return append(b, "nil"...)
		}
		return appendKey(append(b, '&'), v.Elem())
	case reflect.Struct:
		b = append(b, '{')
		for i := range v.NumField() {
			b = append(appendKey(b, v.Field(i)), ' ')
		}
		return append(b, '}')
	case reflect.Slice, reflect.Array:
		b = append(strconv.AppendInt(b, int64(v.Len()), 10), '[')
		for i := range v.Len() {
			b = append(appendKey(b, v.Index(i)), ' ')
		}
		return append(b, ']')
	case reflect.Map:
		var pairs []string
		for entries := v.MapRange(); entries.Next(); {
			pairs = append(pairs, string(appendKey(append(appendKey(nil, entries.Key()), ':'), entries.Value())))
		}
		slices.Sort(pairs)
		return fmt.Appendf(b, "%q", pairs)
	case reflect.String:
		return strconv.AppendQuote(b, v.String())
	case reflect.Bool:
		return strconv.AppendBool(b, v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.AppendInt(b, v.Int(), 10)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.AppendUint(b, v.Uint(), 10)
	case reflect.Float32, reflect.Float64:
		return strconv.AppendFloat(b, v.Float(), 'g', -1, 64)
	}
	panic("exchange: settings of the kind " + v.Kind().String() + " cannot be compared")
}
