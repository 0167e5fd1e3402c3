//go:build linux

package main

import (
	"errors"
	"flag"
	"strings"
	"testing"
)

func samplesOf(values ...float64) []sample {
	var s []sample
	for _, v := range values {
		s = append(s, sample{value: v})
	}
	return s
}

func TestMarkdown(t *testing.T) {
	table := table{
		facts:  []string{"Date: today"},
		peers:  []string{"headgate", "nginx"},
		rounds: 3, seconds: 5,
		results: []result{
			{
				row:     row{title: "work", unit: "µs", goals: []goal{{"nginx", 0.95}, {"haproxy", 0.85}}},
				samples: map[string][]sample{"headgate": samplesOf(9, 8, 10), "nginx": samplesOf(10, 12, 11)},
			},
			{
				row: row{title: "loss", unit: "requests lost", goals: []goal{{"", 0}}},
				samples: map[string][]sample{
					"headgate": {{value: 0, of: 10}, {value: 1, of: 20}, {value: 0, of: 30}},
				},
			},
			{
				row:     row{title: "too much", unit: "µs", goals: []goal{{"nginx", 1}, {"", 20}}},
				samples: map[string][]sample{"headgate": samplesOf(9), "nginx": samplesOf(10, 12, 11)},
				failed:  map[string]error{"headgate": errors.New("it went away")},
			},
		},
	}
	const want = `- Date: today
- Medians of 3 rounds of 5 s, in rotating order; the minimum and maximum are in parentheses

| work | unit | headgate | nginx | ÷ nginx | goal |
|---|---|---|---|---|---|
| work | µs | 9 (8–10) | 11 (10–12) | 0.82 | ≤ 0.95 × nginx: met; ≤ 0.85 × haproxy |
| loss | requests lost | 1 of 60 | – | – | ≤ 0: missed |
| too much | µs | failed | 11 (10–12) | – | ≤ 1 × nginx; ≤ 20 |`
	if got := table.markdown(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	table.peers = []string{"nginx"}
	if got := table.markdown(); strings.Contains(got, "÷") || strings.Contains(got, "goal") {
		t.Errorf("without headgate there is nothing to compare:\n%s", got)
	}
}

func TestPlace(t *testing.T) {
	page := "before\n" + beginMark + "\nold $1\n" + endMark + "\nafter\n"
	got, err := place(page, beginMark, "new $1", endMark)
	want := "before\n" + beginMark + "\n\nnew $1\n\n" + endMark + "\nafter\n"
	if err != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	if _, err := place("nothing", beginMark, "new", endMark); err == nil {
		t.Error("a page without marks was taken")
	}
}

func TestChooseRows(t *testing.T) {
	rows, err := chooseRows("idle,keepalive")
	if err != nil || len(rows) != 2 || rows[0].name != "idle" || rows[1].name != "keepalive" {
		t.Errorf("got %v, %v", rows, err)
	}
	if _, err := chooseRows("idle,none"); err == nil || !strings.Contains(err.Error(), `"none"`) {
		t.Errorf("got %v, want the name in the error", err)
	}
}

func TestUsage(t *testing.T) {
	var out strings.Builder
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(&out)
	flags.Int("rounds", 5, "how many `times`")
	usage(flags)
	for _, want := range append(rowNames(), "-rounds times") {
		if !strings.Contains(out.String(), "  "+want) {
			t.Errorf("no %s in\n%s", want, out.String())
		}
	}
}
