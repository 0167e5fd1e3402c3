package review

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"headgate/internal/config"
	"headgate/internal/config/diff"
	"headgate/internal/schema"
)

// TestEveryDifferenceIsTold changes some fields of objects at random: equal
// configurations have no sentence, every object in the difference has at least one,
// and no sentence shows a secret.
func TestEveryDifferenceIsTold(t *testing.T) {
	type leaf struct {
		kind *config.Kind
		way  []*schema.Field
	}
	var leaves []leaf
	for _, k := range config.Kinds() {
		eachLeaf(k.Schema(), nil, func(way []*schema.Field) { leaves = append(leaves, leaf{k, way}) })
	}
	rapid.Check(t, func(t *rapid.T) {
		l := leaves[rapid.IntRange(0, len(leaves)-1).Draw(t, "field")]
		before, after := config.New(), config.New()
		from, to := rapid.IntRange(-1, 2).Draw(t, "from"), rapid.IntRange(-1, 2).Draw(t, "to")
		if from >= 0 {
			before = with(l.kind, l.way, from)
		}
		if to >= 0 {
			after = with(l.kind, l.way, to)
		}
		d := diff.Compare(before, after)
		r := Of(Change{Before: before, After: after, Difference: d})
		if d.Empty() && (len(r.Objects) > 0 || r.Summary != "nothing changes") {
			t.Fatalf("nothing differs, told is %q", r.Lines(10))
		}
		said := map[Address]bool{}
		for _, o := range r.Objects {
			said[Address{o.Kind, o.Name}] = len(o.Sentences) > 0
			for _, s := range o.Sentences {
				if !strings.HasPrefix(s.Text, o.Title) || strings.Contains(s.Text, secretText) || strings.Contains(s.Text, "{") && !strings.Contains(s.Text, "${") {
					t.Fatalf("a bad sentence: %q", s.Text)
				}
			}
		}
		for _, o := range d.Objects {
			if !said[Address{o.Kind, o.Name}] {
				t.Fatalf("nothing is said of %s %s: %v", o.Kind, o.Name, o.Fields)
			}
		}
	})
}
