package header

import "testing"

func TestParseRange(t *testing.T) {
	for _, c := range []struct {
		s                  string
		size, first, last  int64
		satisfiable, valid bool
	}{
		{"0-9", 100, 0, 9, true, true},
		{" 10-\t", 100, 10, 99, true, true},
		{"-5", 100, 95, 99, true, true},
		{"-500", 100, 0, 99, true, true},
		{"90-500", 100, 90, 99, true, true},
		{"0-99999999999999999999999", 100, 0, 99, true, true},
		{"100-", 100, 0, 0, false, true},
		{"-0", 100, 0, 0, false, true},
		{"-5", 0, 0, 0, false, true},
		{"9-0", 100, 0, 0, false, false},
		{"-", 100, 0, 0, false, false},
		{"+1-2", 100, 0, 0, false, false},
		{"5", 100, 0, 0, false, false},
		{"", 100, 0, 0, false, false},
	} {
		first, last, satisfiable, valid := ParseRange(c.s, c.size)
		if satisfiable != c.satisfiable || valid != c.valid || satisfiable && (first != c.first || last != c.last) {
			t.Errorf("ParseRange(%q, %d) = %d, %d, %v, %v, want %d, %d, %v, %v", c.s, c.size, first, last, satisfiable, valid, c.first, c.last, c.satisfiable, c.valid)
		}
	}
}

func TestListsTag(t *testing.T) {
	for _, c := range []struct {
		value, tag   string
		weak, strong bool
	}{
		{`"a"`, `"a"`, true, true},
		{`"b", "a"`, `"a"`, true, true},
		{`W/"a"`, `"a"`, true, false},
		{`W/"a"`, `W/"a"`, true, false},
		{`"a,b"`, `"a,b"`, true, true},
		{`"a,b"`, `"a"`, false, false},
		{` , ,"a"`, `"a"`, true, true},
		{` * `, ``, true, true},
		{`a`, `a`, true, true},
		{`"a"`, ``, false, false},
		{`"a`, `"a"`, false, false},
	} {
		var l List
		l.Add(IfNoneMatch, `"other"`)
		l.Add(IfNoneMatch, c.value)
		if got := l.ListsTag(IfNoneMatch, c.tag, false); got != c.weak {
			t.Errorf("%s, %s: weak comparison is %v, want %v", c.value, c.tag, got, c.weak)
		}
		if got := l.ListsTag(IfNoneMatch, c.tag, true); got != c.strong {
			t.Errorf("%s, %s: strong comparison is %v, want %v", c.value, c.tag, got, c.strong)
		}
		if l.ListsTag(IfMatch, c.tag, false) {
			t.Errorf("%s: a field that is absent lists a tag", c.value)
		}
	}
}
