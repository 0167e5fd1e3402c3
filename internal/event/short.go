package event

import (
	"fmt"
	"reflect"
	"time"

	"headgate/internal/setting/shown"
)

// short returns a payload whose texts and lists are bounded: they repeat what operators,
// containers and servers have written, which may be as long as a configuration.
func short(p Payload) Payload {
	v := reflect.New(reflect.TypeOf(p)).Elem()
	v.Set(reflect.ValueOf(p))
	shorten(v)
	return v.Interface().(Payload)
}

func shorten(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(shown.Short(v.String(), maxText))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			shorten(v.Field(i))
		}
	case reflect.Slice:
		shortenList(v)
	}
}

// shortenList replaces a list of texts by a private copy with limited length.
func shortenList(v reflect.Value) {
	n := v.Len()
	if n == 0 || v.Type().Elem().Kind() != reflect.String {
		return
	}
	list := reflect.MakeSlice(v.Type(), min(n, maxList), min(n, maxList))
	reflect.Copy(list, v)
	for i := range list.Len() {
		shorten(list.Index(i))
	}
	if n > maxList {
		list.Index(maxList - 1).SetString(fmt.Sprintf("and %d more", n-maxList+1))
	}
	v.Set(list)
}
