package haproxy

import (
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/importer/rules"
)

// counterNames are the counters of a stick-table in rules, by the ends of the samples
// that return them.
var counterNames = []string{"http_req_rate", "http_err_rate", "http_err_cnt", "gpc0_rate", "gpc0"}

// counterOf returns the counter that a sample returns, "" for others.
func counterOf(sample string) string {
	if !strings.HasPrefix(sample, "sc") && !strings.HasPrefix(sample, "src") {
		return ""
	}
	for _, c := range counterNames {
		if strings.HasSuffix(sample, c) && !strings.Contains(sample, "inc_") && !strings.Contains(sample, "clr_") {
			return c
		}
	}
	return ""
}

// bans reports whether a counter is of what only few clients do, so that a rule about it
// becomes a ban. The rate of all requests becomes a rate_limit.
func bansBy(counter string) bool { return counter != "" && counter != "http_req_rate" }

// counting is the stick-table in which a counter of clients is kept.
type counting struct {
	table, track   *directive
	period, expire time.Duration // period is that of a rate
}

// counted finds the table in which the clients of a line are counted.
func (t *translator) counted(s *section, d *directive, counter string) (c counting, ok bool) {
	for _, track := range s.rules("http-request", "tcp-request connection", "tcp-request session", "tcp-request content") {
		i := slices.IndexFunc(track.words, func(w string) bool { return strings.HasPrefix(w, "track-sc") })
		if i < 0 || i+1 >= len(track.words) || track.words[i+1] != "src" {
			continue
		}
		table := s
		if name := track.after("table"); name != "" {
			table = t.backends[name]
		}
		for _, l := range table.find("stick-table") {
			expire, _ := time.ParseDuration(durationOf(l.after("expire")))
			for _, part := range strings.FieldsFunc(strings.Join(l.words, " "), func(r rune) bool { return r == ' ' || r == ',' }) {
				name, period, _ := strings.Cut(strings.TrimSuffix(part, ")"), "(")
				if name != counter {
					continue
				}
				c = counting{table: l, track: track, expire: expire}
				if c.period, _ = time.ParseDuration(durationOf(period)); period != "" && c.period == 0 {
					return counting{}, false
				}
				return c, true
			}
		}
	}
	return counting{}, false
}

// durationOf writes a time of HAProxy as Go does, "" if it is none.
func durationOf(text string) string {
	if out, ok := duration(text); ok {
		return out
	}
	return ""
}

// The bounds of the times of a ban rule.
const (
	minBan, maxWithin, maxFirst = 10 * time.Second, 24 * time.Hour, 720 * time.Hour
)

// clientErrors are the statuses that HAProxy counts as errors of a client.
var clientErrors = []int{400, 401, 402, 403, 404, 405, 406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 416, 417, 421, 422, 423, 424, 426, 428, 429, 431, 451}

// ban makes a ban rule of a line that refuses the clients for which a counter is over a
// number. What says why there is none.
func (t *translator) ban(s *section, d *directive, list []literal, answer string) (name, note, what string) {
	i := slices.IndexFunc(list, func(l literal) bool { return l.Kind == rules.Rate })
	counter := list[i].Name
	limit, _ := strconv.Atoi(list[i].Value)
	c, ok := t.counted(s, d, counter)
	if !ok {
		return "", "", "there is no stick-table with " + counter + " that counts clients by src"
	}
	conditions, lines, what := t.conditionsOf(s, counter, limit+1)
	if what != "" {
		return "", "", what
	}
	within := c.period
	if within == 0 {
		within = c.expire
	}
	if within == 0 {
		return "", "", "the stick-table has neither a period nor expire, and headgate bans for a time"
	}
	length := min(max(within, c.expire, minBan), maxFirst)
	note = "a ban rule that only observes: set mode to enforce when it shows the clients that you want to refuse; a ban counts over " + importer.ShortDuration(min(max(within, minBan), maxWithin)) + ", ends after " + importer.ShortDuration(length) + ", and holds at all proxies"
	if slices.ContainsFunc(list, func(l literal) bool { return l.Routes() || l.Kind == rules.Host }) {
		note += "; not only where the line's other conditions hold"
	}
	if counter == "http_err_rate" || counter == "http_err_cnt" {
		note += "; a 401 counts only where the request had credentials"
	}
	rule := importer.NewObject().Set("when", conditions).Set("within", importer.ShortDuration(min(max(within, minBan), maxWithin))).
		Set("ban", importer.NewObject().Set("first", importer.ShortDuration(length)).Set("factor", 1).Set("max", importer.ShortDuration(length)).Flow()).Set("mode", "observe")
	if answer != "" {
		rule.Set("answer", answer)
	}
	if exempt := exempted(list); len(exempt) > 0 {
		rule.Set("exempt", t.Addresses("exempt", importer.Networks(exempt)))
	}
	name = t.addBan(s.name+"-"+counter, rule)
	for _, l := range append(lines, c.table, c.track) {
		t.Became(l, importer.Close, t.Bans.Field(name), "bans.%s counts what clients do", name)
	}
	t.Check("%s:%d: %s became bans.%s, which only observes: nothing is refused before its mode is enforce", d.File, d.Line, d.Text(), name)
	return name, note, ""
}

// exempted are the networks that a condition leaves out.
func exempted(list []literal) (out []netip.Prefix) {
	for _, l := range list {
		if l.Kind == rules.Client && l.Not {
			out = append(out, networksOf(l)...)
		}
	}
	return out
}

// addBan adds a rule, unless there is an equal one.
func (t *translator) addBan(wish string, rule importer.Object) string {
	for _, name := range t.Bans.Names() {
		if t.Bans.Object(name).Key() == rule.Key() {
			return name
		}
	}
	name := importer.Unused(t.Bans, strings.ReplaceAll(wish, "_", "-"), "clients")
	t.Bans.Set(name, rule)
	return name
}

var statusAsked = regexp.MustCompile(`\{ (?:res\.)?status ([0-9 ]+) \}`)

// conditionsOf are what a counter counts, and the lines that say so.
func (t *translator) conditionsOf(s *section, counter string, count int) (out []importer.Object, lines []*directive, what string) {
	one := func() importer.Object {
		o := importer.NewObject().Flow()
		out = append(out, o)
		return o
	}
	if strings.HasPrefix(counter, "http_err") {
		one().Set("status", clientErrors).Set("count", count)
		return out, nil, ""
	}
	acls := t.acls(s)
	for _, d := range s.rules("http-request", "http-response", "tcp-request content") {
		i := slices.IndexFunc(d.words, func(w string) bool {
			return strings.HasPrefix(w, "sc-inc-gpc0") || strings.HasPrefix(w, "sc0-inc-gpc0") || strings.HasPrefix(w, "sc-inc-gpc(0")
		})
		if i < 0 {
			continue
		}
		lines = append(lines, d)
		if found := statusAsked.FindStringSubmatch(d.Text()); d.name() == "http-response" && found != nil {
			var statuses []int
			for word := range strings.FieldsSeq(found[1]) {
				n, _ := strconv.Atoi(word)
				if n < 400 || n > 599 {
					return nil, nil, "clients are banned for statuses from 400 to 599"
				}
				statuses = append(statuses, n)
			}
			one().Set("status", statuses).Set("count", count)
			continue
		}
		_, c := t.splitIf(s, d, acls)
		var paths []string
		for _, list := range c.Any {
			if len(list) != 1 || list[0].Kind != rules.Path || list[0].Not {
				return nil, nil, "what the counter counts cannot be matched: bans count paths, statuses and reasons"
			}
			paths = append(paths, list[0].Value, list[0].Value+"/*")
		}
		if len(paths) == 0 || d.name() == "http-response" {
			return nil, nil, "what the counter counts cannot be matched: bans count paths, statuses and reasons"
		}
		one().Set("path", paths).Set("count", count)
	}
	if len(out) == 0 {
		return nil, nil, "no line increments the counter"
	}
	return out, lines, ""
}

// bannedBy returns the alternative of a condition with a counter that bans are made of,
// nil if there is none.
func bannedBy(c condition) []literal {
	for _, list := range c.Any {
		if slices.ContainsFunc(list, func(l literal) bool { return l.Kind == rules.Rate && bansBy(l.Name) && !l.Not }) {
			return list
		}
	}
	return nil
}
