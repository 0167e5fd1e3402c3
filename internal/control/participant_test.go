package control

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"headgate/internal/config/diff"
	"headgate/internal/testhouse"
)

// diary is a participant that notes what it is told.
type diary struct {
	name string
	all  *[]string
	fail *string // the participant that fails, with "panic " in front that breaks
}

func (d diary) Prepare(*Next) (Change, error) {
	switch *d.fail {
	case d.name:
		return nil, errors.New(d.name + " is busy")
	case "panic " + d.name:
		panic("a mistake of ours")
	}
	*d.all = append(*d.all, "prepare "+d.name)
	return d, nil
}
func (d diary) Commit() { *d.all = append(*d.all, "commit "+d.name) }
func (d diary) Cancel() { *d.all = append(*d.all, "cancel "+d.name) }

func TestParticipantsCommitInOrderAndCancelInReverse(t *testing.T) {
	at := testhouse.Addresses(t, 2)
	h := prepare(t, document(201, "a "+at[0]))
	var all []string
	var fail string
	for _, name := range []string{"one", "two", "three"} {
		h.c.Join(diary{name, &all, &fail})
	}
	h.run()
	told := func(wanted ...string) {
		t.Helper()
		if !slices.Equal(all, wanted) {
			t.Errorf("got %q, want %q", all, wanted)
		}
		all = nil
	}
	told("prepare one", "prepare two", "prepare three", "commit one", "commit two", "commit three")

	before := snapshot(h)
	fail = "three"
	if err := h.try(document(202, "a "+at[1])); err == nil || err.Error() != "three is busy" {
		t.Errorf("got %v, want what the participant says", err)
	}
	told("prepare one", "prepare two", "cancel two", "cancel one")
	before.same(t, h)
	expectStatus(t, at[1], 0)

	fail = "panic two"
	if err := h.try(document(202, "a "+at[1])); err == nil || !strings.Contains(err.Error(), "prepare: broken invariant") {
		t.Errorf("got %v, want that an invariant is broken", err)
	}
	told("prepare one", "cancel one")
	before.same(t, h)
	expectStatus(t, at[0], 201)

	fail = ""
	if _, err := h.c.DryRun(Cause{}, doc(document(202, "a "+at[1]))); err != nil {
		t.Error(err)
	}
	told("prepare one", "prepare two", "prepare three", "cancel three", "cancel two", "cancel one")
	expectStatus(t, at[1], 0)
	h.apply(document(202, "a "+at[1]))
	expectStatus(t, at[1], 202)
}

func TestADryRunLeavesEverything(t *testing.T) {
	at := testhouse.Addresses(t, 2)
	h := start(t, document(201, "a "+at[0]))
	h.try("version: 2\n") // so that there is a refusal that has to stay
	before := snapshot(h)
	log := len(h.log.String())
	e, err := h.c.DryRun(Cause{Who: "anna", Via: ViaAPI}, doc(document(202, "a "+at[1])))
	if err != nil || e.Who != "anna" || e.When.IsZero() || e.Revision != "" {
		t.Errorf("got %+v and %v", e, err)
	}
	if got := fmt.Sprint(sketch(e.Difference)); got != "[ports a changed address, proxies all changed routes[0].fixed_response.status]" {
		t.Errorf("got the difference %s", got)
	}
	if _, err := h.c.DryRun(Cause{}, doc("version: [")); err == nil {
		t.Error("a broken document passes")
	}
	before.same(t, h)
	expectStatus(t, at[1], 0)
	if more := h.log.String()[log:]; more != "" {
		t.Errorf("the log says %s", more)
	}
}

func TestAnEventTellsOfEachChange(t *testing.T) {
	at := testhouse.Addresses(t, 2)
	h := prepare(t, document(201, "a "+at[0]))
	var all []Event
	h.c.Observe(func(e *Event) { all = append(all, *e) })
	h.run()
	cause := Cause{Who: "anna", Why: "the cut-over", Via: ViaConsole}
	h.c.Apply(cause, doc(document(202, "b "+at[1])))
	h.c.Apply(cause, doc("version: ["))
	if len(all) != 3 {
		t.Fatalf("got %d events, want 3", len(all))
	}
	if e := all[0]; !e.Starting || e.Via != ViaFile || e.Revision != "00000001" || e.Refused != nil || len(e.After.Ports) != 1 {
		t.Errorf("the start: got %+v", e)
	}
	if e := all[1]; e.Who != "anna" || e.Why != "the cut-over" || e.Revision != "00000002" || e.When.IsZero() || e.Took <= 0 {
		t.Errorf("the change: got %+v", e)
	}
	if got := fmt.Sprint(sketch(all[1].Difference)); got != "[ports a removed, ports b added, proxies all changed routes[0].fixed_response.status]" {
		t.Errorf("got the difference %s", got)
	}
	if e := all[2]; e.Refused == nil || e.Who != "anna" || e.After != nil || e.Before != h.c.Plan().Config() {
		t.Errorf("the refusal: got %+v", e)
	}
	if !strings.Contains(h.log.String(), `via=console who=anna why="the cut-over"`) {
		t.Errorf("the log does not tell who made the change: %s", h.log)
	}
}

// sketch is a difference in short.
func sketch(d *diff.Difference) string {
	var all []string
	for _, o := range d.Objects {
		s := o.Kind + " " + o.Name + " " + string(o.Change)
		for _, f := range o.Fields {
			s += " " + f.Path
		}
		all = append(all, s)
	}
	return "[" + strings.Join(all, ", ") + "]"
}
