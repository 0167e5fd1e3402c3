package importer

import (
	"slices"
	"strings"
	"testing"
)

// finished finishes a translation and returns the entry of each text, with what a person
// is to look at.
func finished(t *testing.T, tr *Translation) (entries map[string]Entry, check string) {
	t.Helper()
	_, report, err := tr.Finish("a test", "line", nil)
	if err != nil {
		t.Fatal(err)
	}
	entries = map[string]Entry{}
	for _, e := range report.Entries {
		entries[e.Directive] = e
	}
	return entries, strings.Join(report.Check, "\n")
}

func part(text string) *line { return &line{Origin{File: "f", Line: 1}, text} }

func TestAVerdictNamesTheFieldThatItBecame(t *testing.T) {
	tr := NewTranslation("test")
	route := NewObject().Set("path", "/a")
	route.Append("headers", NewObject().Set("name", "A"))
	route.Append("headers", NewObject().Set("name", "B"))
	tr.Became(part("path"), Same, route.Field("path"), "")
	tr.Became(part("header"), Close, route.LastOf("headers"), "with %s", "a difference")
	tr.Became(part("version"), Same, ByItself(), "")
	tr.Proxies.Set("p", NewObject().Set("routes", []Object{route}))
	route.Objects("headers")[1].Set("value", "later") // a field may be completed behind its verdict
	entries, check := finished(t, tr)
	for text, want := range map[string]string{"path": "proxies.p.routes[0].path", "header": "proxies.p.routes[0].headers[1]", "version": "default"} {
		if got := entries[text].Became; !slices.Equal(got, []string{want}) {
			t.Errorf("%s: got %q, want %s", text, got, want)
		}
	}
	if entries["header"].Verdict != Close || entries["header"].Note != "with a difference" || check != "" {
		t.Errorf("got %+v, %q", entries["header"], check)
	}
}

// A route that is left out takes what was said of its directives along.
func TestAVerdictWhoseFieldIsNotInTheDocumentIsImpossible(t *testing.T) {
	tr := NewTranslation("test")
	lost := NewObject().Set("path", "/lost")
	both := part("both")
	tr.Became(part("lost"), Same, lost.Field("path"), "")
	tr.Became(part("never set"), Close, lost.Field("servers"), "a difference")
	tr.Became(both, Same, lost.Field("path"), "")
	inner := part("inner")
	tr.Became(inner, Same, lost.Field("path"), "")
	tr.Became(part("block"), Same, Through(inner), "")
	tr.Became(part("large block"), Same, Through(inner, both), "")
	kept := NewObject().Set("path", "/kept")
	tr.Became(both, Same, kept.Field("path"), "")
	tr.Proxies.Set("p", NewObject().Set("routes", []Object{kept}))
	entries, check := finished(t, tr)
	for _, text := range []string{"lost", "never set", "inner", "block"} {
		if e := entries[text]; e.Verdict != Impossible || !strings.HasSuffix(e.Note, notThere) || e.Became != nil || strings.Contains(check, "f:1: "+text+" is not in the document") == strings.Contains(text, "block") {
			t.Errorf("%s: got %+v, %q", text, e, check)
		}
	}
	for _, text := range []string{"both", "large block"} {
		if e := entries[text]; e.Verdict != Same || !slices.Equal(e.Became, []string{"proxies.p.routes[0].path"}) {
			t.Errorf("%s: got %+v", text, e)
		}
	}
}

// Hoist leaves one of several equal fields, and at another place.
func TestAnEqualFieldAtAnotherPlaceIsFound(t *testing.T) {
	tr := NewTranslation("test")
	limit := func() Object { return NewObject().Set("request_body_limit", "1MiB") }
	a, b := limit().Set("path", "/a"), limit().Set("path", "/b")
	tr.Became(part("second"), Same, b.Field("request_body_limit"), "")
	p := NewObject()
	Hoist(p, []Object{a, b}, []string{"request_body_limit"})
	tr.Proxies.Set("p", p.Set("routes", []Object{a, b}))
	if entries, _ := finished(t, tr); !slices.Equal(entries["second"].Became, []string{"proxies.p.request_body_limit"}) {
		t.Errorf("got %+v", entries["second"])
	}
}

func TestPartsThatActThroughEachOtherEnd(t *testing.T) {
	tr := NewTranslation("test")
	a, b := part("a"), part("b")
	tr.Became(a, Same, Through(b), "")
	tr.Became(b, Same, Through(a), "")
	if entries, _ := finished(t, tr); entries["a"].Verdict != Impossible || entries["b"].Verdict != Impossible {
		t.Errorf("got %+v", entries)
	}
}

// Say accepts no verdict that is in the document; one that gets there all the same, by a
// change of a verdict without a field, is found.
func TestAVerdictWithoutAFieldIsImpossible(t *testing.T) {
	tr := NewTranslation("test")
	p := part("amended")
	tr.AddVerdict(p, Ignored, "")
	tr.Amend(p, Close, "a difference")
	tr.Report.Add(Entry{File: "f", Line: 2, Directive: "added", Verdict: Same})
	entries, check := finished(t, tr)
	for _, text := range []string{"amended", "added"} {
		if e := entries[text]; e.Verdict != Impossible || !strings.Contains(check, text+" is not in the document") {
			t.Errorf("%s: got %+v, %q", text, e, check)
		}
	}
}

func TestAdoptedVerdictsAreLookedForInTheOuterDocument(t *testing.T) {
	inner, outer := NewTranslation("inner"), NewTranslation("outer")
	route := NewObject().Set("path", "/a")
	inner.Became(part("other"), Same, ByItself(), "")
	inner.Became(part("path"), Same, route.Field("path"), "")
	inner.Became(part("lost"), Same, NewObject().Set("path", "/lost").Field("path"), "")
	inner.Became(part("changed"), Same, route.Field("path"), "")
	outer.Adopt(inner, func(e *Entry) bool {
		if e.Directive == "changed" {
			e.Verdict = Impossible
		}
		return e.Directive != "other"
	})
	outer.Proxies.Set("p", NewObject().Set("routes", []Object{route}))
	entries, _ := finished(t, outer)
	if len(entries) != 3 || !slices.Equal(entries["path"].Became, []string{"proxies.p.routes[0].path"}) || entries["lost"].Verdict != Impossible || entries["changed"].Verdict != Impossible {
		t.Errorf("got %+v", entries)
	}
}
