package schema

import (
	"reflect"
	"strings"
	"testing"

	"headgate/internal/setting/unit"
)

type fixedPositions struct{}

func (fixedPositions) File(string) string { return "" }

func (fixedPositions) Position(string) (int, int) { return 7, 3 }

func TestProblemsReadLikeACompilersErrors(t *testing.T) {
	r := NewReport("headgate.yaml", fixedPositions{})
	at := r.Root().Field("proxies").Field("shop").Called("proxy", "shop").Field("routes").Index(1).Called("route", "/api")
	at.Field("path").Problemf("write another", "path %q is bad", "x")
	got := r.Problems()[0]
	if got.Error() != `headgate.yaml:7:3: proxies.shop.routes[1].path: path "x" is bad; write another` {
		t.Errorf("Error() = %s", got.Error())
	}
	if got.Object != "proxy shop, route /api" {
		t.Errorf("Object = %q", got.Object)
	}
	if s := (Problem{What: "w"}).Error(); s != "w" {
		t.Errorf("a bare problem reads %q", s)
	}
}

func TestOddNamesStandInQuotes(t *testing.T) {
	r := NewReport("", nil)
	if got := r.Root().Field("ports").Field("a.b").Field("x").Path(); got != `ports["a.b"].x` {
		t.Errorf("Path() = %s", got)
	}
}

func TestProblemsThatFollowFromOthersAreLeftOut(t *testing.T) {
	r := NewReport("f", nil)
	ports := r.Root().Field("ports")
	ports.Field("web").Broken(3, 1, "found a list", "")
	ports.Field("web").Field("address").Problem("missing", "")
	ports.Field("b").Field("address").ProblemAt(5, 1, "bad", "")
	ports.Field("b").Field("address").Problem("bad again", "")
	ports.Field("webby").Problem("other", "")
	if got := len(r.Problems()); got != 3 {
		t.Errorf("%d problems, want 3: %v", got, r.Problems())
	}
}

func TestReportIsBounded(t *testing.T) {
	r := NewReport("f", nil)
	for i := range 5000 {
		r.Add(Problem{Line: i + 1, What: "bad"})
	}
	got := r.Problems()
	if len(got) != maxProblems+1 || !strings.Contains(got[maxProblems].What, "4000 more") {
		t.Errorf("%d problems, the last %q", len(got), got[len(got)-1].What)
	}
}

type sample struct {
	_     struct{}       `later:"tls"`
	Name  string         `json:"name" required:"true" max:"4" enum:"a,bb,ccccc" later:"dd"`
	Wait  unit.Duration  `json:"wait" default:"30s" min:"1s" max:"1h"`
	Count int            `json:"count" default:"3" min:"1"`
	Limit *unit.Size     `json:"limit,omitempty" default:"1KiB"`
	Inner inner          `json:"inner"`
	List  []*inner       `json:"list,omitempty" max:"1"`
	ByKey map[string]int `json:"by_key,omitempty"`
	Skip  int            `json:"-"`
	inner
}

type inner struct {
	On bool `json:"on" default:"true"`
}

func TestDescribeFillsDefaults(t *testing.T) {
	o := Describe(reflect.TypeFor[sample]())
	var s sample
	o.Fill(reflect.ValueOf(&s).Elem())
	if s.Wait.String() != "30s" || s.Count != 3 || !s.Inner.On || !s.On || s.Limit != nil {
		t.Errorf("Fill = %+v", s)
	}
	if got := strings.Join(o.Names(), " "); got != "name wait count limit inner list by_key on" {
		t.Errorf("Names = %s", got)
	}
	if got := o.Field("limit").DefaultOf().Elem().Int(); got != 1024 {
		t.Errorf("DefaultOf limit = %d", got)
	}
	if o.Field("list").DefaultOf().IsValid() || o.Later[0] != "tls" || len(o.Objects()) != 2 {
		t.Error("a default, a later word or an object is wrong")
	}
}

func TestBoundsComeFromTags(t *testing.T) {
	o := Describe(reflect.TypeFor[sample]())
	for _, c := range []struct {
		field string
		value any
		want  string
	}{
		{"name", "a", ""},
		{"name", "ccccc", "more than the maximum"},
		{"name", "b", "unknown value"},
		{"name", "dd", "not in this version yet"},
		{"wait", unit.Duration(1), "below the minimum 1s"},
		{"wait", unit.Duration(1e9), ""},
		{"wait", unit.Duration(1e15), "above the maximum 1h"},
		{"count", 0, "below the minimum 1"},
		{"list", make([]*inner, 2), "2 entries"},
	} {
		if what, _ := o.Field(c.field).Check(reflect.ValueOf(c.value)); (what == "") != (c.want == "") || !strings.Contains(what, c.want) {
			t.Errorf("%s = %v: %q, want %q", c.field, c.value, what, c.want)
		}
	}
}
