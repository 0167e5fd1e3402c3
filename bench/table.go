//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
)

// subject is the peer that the others are compared with.
const subject = "headgate"

// table is what a run found.
type table struct {
	facts   []string
	peers   []string
	results []result
	rounds  int
	seconds int
}

// markdown writes the table as it stands in the page.
func (t *table) markdown() string {
	var out strings.Builder
	for _, fact := range t.facts {
		fmt.Fprintf(&out, "- %s\n", fact)
	}
	fmt.Fprintf(&out, "- Medians of %d rounds of %d s, in rotating order; the minimum and maximum are in parentheses\n\n", t.rounds, t.seconds)
	others := slices.DeleteFunc(slices.Clone(t.peers), func(p string) bool { return p == subject })

	heads := append([]string{"work", "unit"}, t.peers...)
	if len(others) < len(t.peers) {
		for _, p := range others {
			heads = append(heads, "÷ "+p)
		}
		heads = append(heads, "goal")
	}
	fmt.Fprintf(&out, "| %s |\n|%s\n", strings.Join(heads, " | "), strings.Repeat("---|", len(heads)))
	for _, r := range t.results {
		cells := []string{r.row.title, r.row.unit}
		for _, p := range t.peers {
			if r.failed[p] != nil {
				cells = append(cells, "failed")
				continue
			}
			cells = append(cells, cell(r.samples[p]))
		}
		if len(others) < len(t.peers) {
			for _, p := range others {
				cells = append(cells, short(r.ratio(p)))
			}
			cells = append(cells, r.goals())
		}
		fmt.Fprintf(&out, "| %s |\n", strings.Join(cells, " | "))
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// cell writes the samples of one peer: the median and the range; counts are
// added up.
func cell(samples []sample) string {
	if len(samples) == 0 {
		return "–"
	}
	if samples[0].of > 0 {
		var sum sample
		for _, s := range samples {
			sum.value += s.value
			sum.of += s.of
		}
		return sum.String()
	}
	v := values(samples)
	if len(v) == 1 {
		return short(v[0])
	}
	return fmt.Sprintf("%s (%s–%s)", short(median(v)), short(slices.Min(v)), short(slices.Max(v)))
}

func values(samples []sample) []float64 {
	var v []float64
	for _, s := range samples {
		v = append(v, s.value)
	}
	return v
}

// ratio returns the subject's median divided by a peer's; NaN where there is no
// sense in it.
func (r *result) ratio(peer string) float64 {
	mine, theirs := median(values(r.samples[subject])), median(values(r.samples[peer]))
	if theirs == 0 || r.failed[subject] != nil || r.failed[peer] != nil {
		return median(nil)
	}
	return mine / theirs
}

// goals writes what the row is to reach, and whether it did.
func (r *result) goals() string {
	var list []string
	for _, g := range r.row.goals {
		got, text := r.own(), "≤ "+short(g.most)
		if g.peer != "" {
			got, text = r.ratio(g.peer), fmt.Sprintf("≤ %s × %s", short(g.most), g.peer)
		}
		switch {
		case math.IsNaN(got): // not measured
		case got <= g.most:
			text += ": met"
		default:
			text += ": missed"
		}
		list = append(list, text)
	}
	return strings.Join(list, "; ")
}

// own returns what the subject reached: its median, or the sum where things are
// counted; NaN if it failed.
func (r *result) own() float64 {
	if r.failed[subject] != nil {
		return median(nil)
	}
	samples := r.samples[subject]
	if len(samples) == 0 || samples[0].of == 0 {
		return median(values(samples))
	}
	sum := 0.0
	for _, s := range samples {
		sum += s.value
	}
	return sum
}

// The table stands in its page between these.
const (
	beginMark = "<!-- bench: begin. Made by make bench; do not edit. -->"
	endMark   = "<!-- bench: end -->"

	beginSteady = "<!-- steady: begin. Made by make bench BENCH=-steady; do not edit. -->"
	endSteady   = "<!-- steady: end -->"
)

// place puts a table into a page between two marks, in the place of the one before.
func place(page, begin, table, end string) (string, error) {
	marked := regexp.MustCompile(`(?s)` + regexp.QuoteMeta(begin) + `.*?` + regexp.QuoteMeta(end))
	if !marked.MatchString(page) {
		return "", errors.New("the page has no place for the table: no line " + begin)
	}
	return marked.ReplaceAllLiteralString(page, begin+"\n\n"+table+"\n\n"+end), nil
}

// writePage puts a table into a page on the disk, between two marks.
func writePage(path, begin, table, end string) error {
	page, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is not there; run bench where the module is", path)
	}
	if err != nil {
		return err
	}
	text, err := place(string(page), begin, table, end)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(text), 0o644)
}
