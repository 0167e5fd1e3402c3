// Package fail2ban reads jails of fail2ban that watch the logs of a web server, and writes
// ban rules of headgate and a report in which every setting has a verdict. Import is the
// way. The rules only observe: they show whom they would ban.
//
// parse.go reads the files, filter.go says what the filter of a jail counts: of the filters
// that fail2ban ships it is known, the expressions of others are tried at lines of an access
// log. It never applies anything, and opens no file but those that it is given and the
// filters beside them.
package fail2ban

import (
	"cmp"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"headgate/internal/migrate/importer"
)

// maxFileSize bounds one file.
const maxFileSize = 4 << 20

// Import reads jail.conf, jail.local and files of jail.d, in the order of names; of a folder
// it reads those files in the order in which fail2ban does. The error has the place of what
// cannot be read: nothing is written then.
func Import(names []string, files importer.Files) ([]byte, *importer.Report, error) {
	files = files.Bounded(maxFileSize, "more than a file of jails has")
	t := &translator{Translation: importer.NewTranslation("fail2ban"), files: files, sections: map[string]*section{}}
	var all []string
	for _, name := range names {
		more, err := t.expand(name)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, more...)
	}
	for _, name := range all {
		if err := t.file(name); err != nil {
			return nil, nil, err
		}
		t.dirs = append(t.dirs, filepath.Dir(name))
	}
	if len(t.order) == 0 {
		return nil, nil, fmt.Errorf("%s: there is no jail in it; is this a jail.local of fail2ban?", strings.Join(names, ", "))
	}
	for _, s := range t.order {
		t.jail(s)
	}
	t.rest()
	return t.Finish("jails of fail2ban", "setting", all)
}

// expand returns the files of a folder in the order in which fail2ban reads them: later ones
// replace settings of those before.
func (t *translator) expand(name string) (out []string, err error) {
	for _, pattern := range []string{"jail.conf", "jail.d/*.conf", "jail.local", "jail.d/*.local"} {
		found, err := t.files.Glob(filepath.Join(name, filepath.FromSlash(pattern)))
		if err != nil {
			return nil, err
		}
		slices.Sort(found)
		out = append(out, found...)
	}
	if len(out) == 0 {
		out = []string{name}
	}
	return out, nil
}

// translator goes through the jails.
type translator struct {
	*importer.Translation
	files    importer.Files
	dirs     []string // of the files that were read
	defaults *section
	sections map[string]*section
	order    []*section
	all      []*setting
}

// jail makes a ban rule of a jail.
func (t *translator) jail(s *section) {
	filter, enabled := t.get(s, "filter"), t.get(s, "enabled")
	name := s.name
	if filter != nil {
		name, _, _ = strings.Cut(t.value(s, filter), "[")
	}
	count := t.count(s, name)
	switch {
	case enabled == nil || !truth(enabled.value):
		t.ignore(s, "the jail is not enabled")
		return
	case count.other:
		t.ignore(s, "the jail does not watch requests: fail2ban keeps it")
		return
	case count.what != "":
		for _, e := range append([]*setting{s.head}, s.settings...) {
			t.AddVerdict(e, importer.Impossible, "%s", count.what)
		}
		t.Check("%s:%d: the jail %s could not be translated: %s", s.head.File, s.head.Line, s.name, count.what)
		return
	}
	r := &rule{t: t, s: s, o: importer.NewObject()}
	r.times(count.conditions)
	r.exempt()
	wish := importer.Unused(t.Bans, s.name, "jail")
	t.Bans.Set(wish, r.o)
	became := t.Bans.Field(wish)
	note := "bans." + wish + ", which only observes: set its mode to enforce when it shows the clients that you want to refuse"
	for _, e := range []*setting{s.head, enabled} {
		t.Became(e, importer.Close, became, "%s", note)
	}
	if filter != nil {
		t.Became(filter, importer.Close, r.o.Field("when"), "%s", cmp.Or(count.note, "what headgate answers and servers answer is counted, not lines of a log"))
	}
	for _, name := range []string{"logpath", "backend", "logencoding", "usedns", "journalmatch", "datepattern"} {
		if e := t.get(s, name); e != nil {
			t.AddVerdict(e, importer.Ignored, "requests are counted as they are answered; no log is read")
		}
	}
	t.Check("%s:%d: the jail %s became bans.%s, which only observes: disable the jail when the mode of the rule is enforce", s.head.File, s.head.Line, s.name, wish)
}

// rule is a ban rule that is made.
type rule struct {
	t *translator
	s *section
	o importer.Object
}

// The bounds of the settings of a ban rule.
const (
	minTime, maxWithin     = 10 * time.Second, 24 * time.Hour
	maxFirst, maxBan       = 720 * time.Hour, 8760 * time.Hour
	usualRetry, maxRetries = 5, 60000
)

// times sets what is counted, over which time, and for how long is banned.
func (r *rule) times(conditions []importer.Object) {
	count := usualRetry
	retry := r.t.get(r.s, "maxretry")
	if retry != nil {
		if n, err := strconv.Atoi(r.t.value(r.s, retry)); err == nil && n > 0 {
			count = min(n, maxRetries)
		}
	}
	for _, c := range conditions {
		c.Set("count", count)
	}
	r.o.Set("when", conditions)
	if retry != nil {
		r.t.Became(retry, importer.Same, r.o.Field("when"), "count")
	}
	within, note := r.time("findtime", 10*time.Minute, minTime, maxWithin)
	r.became("findtime", r.o.Set("within", importer.ShortDuration(within)).Field("within"), note)
	ban := importer.NewObject().Flow()
	first, note := r.time("bantime", 10*time.Minute, minTime, maxFirst)
	ban.Set("first", importer.ShortDuration(first))
	longest, factor := first, 1
	if e := r.t.get(r.s, "bantime.increment"); e != nil && truth(e.value) {
		longest, factor = maxBan, 2
		if e := r.t.get(r.s, "bantime.maxtime"); e != nil {
			var note string
			longest, note = r.time("bantime.maxtime", maxBan, first, maxBan)
			defer func() { r.became("bantime.maxtime", ban.Field("max"), note) }()
		}
		defer func() {
			r.became("bantime.increment", ban.Field("factor"), "each ban is twice as long as the one before")
		}()
	} else if strings.HasPrefix(r.text("bantime"), "-") {
		longest, factor = maxBan, 100
	}
	ban.Set("factor", factor).Set("max", importer.ShortDuration(max(longest, first)))
	r.o.Set("ban", ban).Set("mode", "observe")
	r.became("bantime", ban.Field("first"), note)
	for _, name := range []string{"bantime.rndtime", "bantime.factor", "bantime.formula", "bantime.multipliers", "bantime.overalljails"} {
		if e := r.t.get(r.s, name); e != nil {
			r.t.AddVerdict(e, importer.Impossible, "ban: {first, factor, max} says for how long clients are banned")
		}
	}
}

func (r *rule) text(name string) string {
	if e := r.t.get(r.s, name); e != nil {
		return r.t.value(r.s, e)
	}
	return ""
}

// time is a time of the jail within bounds, and where it differs.
func (r *rule) time(name string, otherwise, least, most time.Duration) (time.Duration, string) {
	text := r.text(name)
	d, ok := duration(text)
	switch {
	case text == "":
		return otherwise, ""
	case strings.HasPrefix(text, "-"):
		return most, "a ban ends after " + importer.ShortDuration(most) + ", and further ones after at most " + importer.ShortDuration(maxBan) + "; for ever is a list in ip_filter"
	case !ok:
		return otherwise, "the time cannot be read: " + importer.ShortDuration(otherwise)
	case d < least || d > most:
		return min(max(d, least), most), "from " + importer.ShortDuration(least) + " to " + importer.ShortDuration(most)
	}
	return d, ""
}

func (r *rule) became(name string, f importer.Field, note string) {
	if e := r.t.get(r.s, name); e != nil {
		verdict := importer.Same
		if note != "" {
			verdict = importer.Close
		}
		r.t.Became(e, verdict, f, "%s", note)
	}
}

// exempt leaves out the addresses of ignoreip.
func (r *rule) exempt() {
	e := r.t.get(r.s, "ignoreip")
	if e == nil {
		return
	}
	var texts, names []string
	for _, word := range strings.FieldsFunc(r.t.value(r.s, e), func(c rune) bool { return c == ' ' || c == ',' || c == '\n' || c == '\t' }) {
		p := importer.Prefixes([]string{word})
		switch {
		case len(p) == 0:
			names = append(names, word)
		case !p[0].Addr().IsLoopback():
			texts = append(texts, importer.Networks([]netip.Prefix{p[0].Masked()})...)
		}
	}
	if len(names) > 0 {
		list := importer.Unused(r.t.Lists, "trusted", "trusted")
		for _, n := range r.t.Lists.Names() {
			if slices.Equal(r.t.Lists.Object(n).Texts("entries"), names) {
				list = n
			}
		}
		r.t.Lists.Set(list, importer.NewObject().Set("entries", names))
		texts = append(texts, "list:"+list)
	}
	if len(texts) == 0 {
		r.t.Became(e, importer.Same, importer.ByItself(), "loopback is never banned")
		return
	}
	r.o.Set("exempt", r.t.Addresses("exempt", texts))
	r.t.Became(e, importer.Same, r.o.Field("exempt"), "")
}

// ignore gives a jail's own settings one verdict.
func (t *translator) ignore(s *section, note string) {
	for _, e := range append([]*setting{s.head}, s.settings...) {
		t.AddVerdict(e, importer.Ignored, "%s", note)
	}
}

// known has the settings that need no look at their values.
var known = importer.NewTable([]importer.Row{
	importer.NewRow("port protocol chain banaction banaction_allports fail2ban_agent knocking_url blocktype action_ action_abuseipdb action_blocklist_de action_cf_mwl action_badips action_badips_report", importer.Ignored, "headgate refuses requests itself; no rule of a firewall is made"),
	importer.NewRow("action action_mw action_mwl action_xarf mta destemail sender", importer.Impossible, "events client.banned and client.unbanned go to webhooks"),
	importer.NewDefault("ignoreself", importer.Same, "own addresses are never banned"),
	importer.NewRow("ignorecommand ignorecache", importer.Impossible, "exempt names addresses and lists; no command is run"),
	importer.NewRow("maxmatches maxlines mode failregex ignoreregex prefregex tags syslog_authpriv nginx_error_log nginx_access_log", importer.Ignored, "requests are counted as they are answered; no log is read"),
	importer.NewRow("before after", importer.Ignored, "paths and names of the distribution"),
})

// rest adds a verdict to all settings without one.
func (t *translator) rest() {
	for _, e := range t.all {
		if e.Settled() {
			continue
		}
		if e.section != "" && e.section != "DEFAULT" && e.section != "INCLUDES" {
			if h := t.sections[e.section]; h != nil && e == h.head {
				continue
			}
		}
		if t.SayKnown(e, known, e.name) {
			continue
		}
		switch {
		case e.section == "DEFAULT" && slices.Contains([]string{"enabled", "filter", "logpath", "backend", "usedns", "logencoding", "maxretry", "findtime", "bantime", "ignoreip"}, e.name),
			e.section == "DEFAULT" && strings.HasPrefix(e.name, "bantime."), e.name == "":
			t.AddVerdict(e, importer.Ignored, "no jail that was translated uses it, or another file replaces it")
		case e.replaced:
			t.AddVerdict(e, importer.Ignored, "another file or line replaces it")
		default:
			t.AddVerdict(e, importer.Impossible, "headgate does not know this setting")
		}
	}
}
