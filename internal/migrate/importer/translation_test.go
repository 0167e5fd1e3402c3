package importer

import (
	"strings"
	"testing"
)

// line is a part of a source whose directives are lines.
type line struct {
	Origin
	text string
}

func (l *line) Text() string { return l.text }

func TestTheFirstVerdictStands(t *testing.T) {
	tr := NewTranslation("test")
	p := &line{Origin{File: "f", Line: 1}, "a"}
	if p.Settled() || p.Verdict() != "" {
		t.Error("a part has a verdict before anybody looked at it")
	}
	if !tr.Became(p, Same, ByItself(), "") || tr.AddVerdict(p, Impossible, "no") {
		t.Error("the second verdict was taken")
	}
	if p.Verdict() != Same || len(tr.Report.Entries) != 1 {
		t.Errorf("got %s and %d entries, want %s and 1", p.Verdict(), len(tr.Report.Entries), Same)
	}
}

// TestAmendChangesThePartAndNoOther holds that of two directives with one text on one
// line the right one is changed.
func TestAmendChangesThePartAndNoOther(t *testing.T) {
	tr := NewTranslation("test")
	first, second, never := &line{Origin{File: "f", Line: 1}, "a"}, &line{Origin{File: "f", Line: 1}, "a"}, &line{Origin{File: "f", Line: 1}, "a"}
	tr.Became(first, Same, ByItself(), "")
	tr.Became(second, Same, ByItself(), "one")
	tr.Amend(second, Close, "two")
	tr.Amend(never, Close, "three")
	e := tr.Report.Entries
	if len(e) != 2 || e[0].Verdict != Same || e[0].Note != "" || e[1].Verdict != Close || e[1].Note != "one; two" || second.Verdict() != Close {
		t.Errorf("got %+v", e)
	}
}

func TestUnusedNamesAreNamesOfObjects(t *testing.T) {
	in := NewObject().Set("a", "1").Set("a-2", "1").Set("otherwise", "1")
	for _, test := range []struct{ wish, want string }{
		{"b", "b"}, {"a", "a-3"}, {"*.example.com", "example.com"}, {"_x", "x"}, {"läden & co", "l-den-co"}, {"ü", "otherwise-2"}, {"", "otherwise-2"},
		{strings.Repeat("n", 200), strings.Repeat("n", maxName)},
	} {
		if got := Unused(in, test.wish, "otherwise"); got != test.want {
			t.Errorf("%q: got %q, want %q", test.wish, got, test.want)
		}
	}
}

func TestFinishCountsAndOrdersTheReport(t *testing.T) {
	tr := NewTranslation("test")
	table := NewTable([]Row{NewRow("a b", Ignored, "nothing to do"), NewRow("b c", Impossible, "no")})
	for _, p := range []*line{{Origin{File: "2", Line: 1}, "b"}, {Origin{File: "1", Line: 9}, "c"}, {Origin{File: "1", Line: 2}, "a"}} {
		if !tr.SayKnown(p, table, p.text) {
			t.Errorf("%s is not in the table", p.text)
		}
	}
	if tr.SayKnown(&line{text: "x"}, table, "x") {
		t.Error("x is in the table")
	}
	tr.Check("look at %s", "this")
	tr.Check("look at %s", "this")
	tr.Proxies.Set("p", NewObject().Set("active", true))
	doc, report, err := tr.Finish("a test", "line", []string{"1", "2"})
	if err != nil {
		t.Fatal(err)
	}
	var order string
	for _, e := range report.Entries {
		order += e.Directive
	}
	if order != "acb" || report.Counts[Ignored] != 2 || report.Counts[Impossible] != 1 || len(report.Check) != 1 {
		t.Errorf("got %s, %v, %q", order, report.Counts, report.Check)
	}
	const want = "# Made from a test by headgate import.\n# 3 directives: 0 the same, 0 close, 2 ignored, 1 not possible.\n# The report says what became of every line.\n"
	if !strings.HasPrefix(string(doc), want) || !strings.Contains(string(doc), "proxies:\n  p:\n    active: true\n") || strings.Contains(string(doc), "ports") {
		t.Errorf("got\n%s", doc)
	}
}
