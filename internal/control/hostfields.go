package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"headgate/internal/config"
	"headgate/internal/config/diff"
	steps "headgate/internal/config/document"
	"headgate/internal/file"
	"headgate/internal/schema"
	"headgate/internal/setting/shown"
	"headgate/internal/store/history"
)

// Where several machines share a store, each machine could make the others run a program, send
// their files to clients, or write to a path. Such values have an effect on a machine only if
// they were set on it, in its files or by a command on it, or if it has the file
// allow-host-fields. Otherwise the objects that contain them are withheld, and the rest applies.

// AllowHostFields is the name of the file in the state directory that allows the values that other
// machines set. Its content has no meaning.
const AllowHostFields = "allow-host-fields"

// hostFieldsName is the file in the state directory with the values that were set on this
// machine.
const hostFieldsName = "host-fields.json"

// maxHostFields limits the number of saved values, maxWithheldTexts the number of descriptions, and
// maxWithheldText the bytes of a description.
const maxHostFields, maxWithheldTexts, maxWithheldText = 10_000, 100, 1000

// hostFields are the values that this machine allows. They are guarded by the lock of changes.
type hostFields struct {
	// own are the keys of the values that were set here, the oldest first; unsaved is whether the
	// file lacks some of them.
	own     []string
	unsaved bool
	// allowed is whether the file that allows all values existed at the last change, and again the
	// time before which this is not checked again after a failure.
	allowed bool
	again   time.Time
	index   *diff.HostIndex
	// withheld are the values of the active configuration that have no effect.
	withheld []withheldValue
}

// withheldValue is a value that has no effect on this machine.
type withheldValue struct{ kind, name, text string }

// startHostFieldsLocked reads which values were set on this machine. On the first start with
// others, and with the first release that has this check, these are the ones in its files.
func (c *Control) startHostFieldsLocked() {
	h, name := &c.mu.host, filepath.Join(c.options.StateDir, hostFieldsName)
	if !c.shared {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			c.log.Warn("cannot remove the list of host fields of a former group", "error", err)
		}
		return
	}
	data, err := file.Read(name, 64<<20, "a list of host fields is smaller")
	switch {
	case err == nil:
		err = json.Unmarshal(data, &h.own)
	case errors.Is(err, fs.ErrNotExist):
		err, h.unsaved = nil, true
		if docs, unread := c.source.Read(nil); unread == nil && !c.options.Created {
			if cfg, _, problems := config.LoadDocuments(docs, nil); len(problems) == 0 {
				values, _ := h.index.Values(cfg)
				h.learn(values, nil)
			}
		}
		c.saveHostFieldsLocked()
	}
	if err != nil {
		c.log.Error("cannot read which host fields were set on this machine: none of them has an effect", "error", err)
	}
}

// learn adds the values that are not among others to own.
func (h *hostFields) learn(values []diff.HostValue, others map[string]bool) {
	for i := range values {
		v := &values[i]
		if key := v.Key(); v.Local() != "" && !others[key] && !slices.Contains(h.own, key) {
			h.own, h.unsaved = append(h.own, key), true
		}
	}
	h.own = h.own[max(len(h.own)-maxHostFields, 0):]
}

// saveHostFieldsLocked saves which values were set on this machine.
func (c *Control) saveHostFieldsLocked() {
	h := &c.mu.host
	if !h.unsaved || c.mu.frozen || c.options.Inherited != nil && !c.ready.Load() {
		return // or another process owns the directory: followHostFields saves it
	}
	data, err := json.MarshalIndent(append([]string{}, h.own...), "", " ")
	if err == nil {
		err = file.Replace(filepath.Join(c.options.StateDir, hostFieldsName), append(data, '\n'))
	}
	if err != nil {
		c.log.Error("cannot save which host fields were set on this machine: they have no effect after the next start", "error", err)
		return
	}
	h.unsaved = false
}

// hostFieldsAllowed reports whether this machine allows the values that other machines set.
func (c *Control) hostFieldsAllowed() bool {
	info, err := os.Lstat(filepath.Join(c.options.StateDir, AllowHostFields))
	return err == nil && info.Mode().IsRegular()
}

// withhold determines which values of the configuration have no effect on this machine. The error
// is a *Refused if such a value is in an object that cannot be withheld, or is new and was set
// through the API.
func (ch *change) withhold(cfg *config.Config) error {
	c := ch.control
	if !c.shared {
		return nil
	}
	h := &c.mu.host
	values, index := h.index.Values(cfg)
	if !ch.dry {
		h.index = index
	}
	ch.hostAllowed = c.hostFieldsAllowed()
	own := *h
	own.own = slices.Clone(h.own)
	refused := map[string]bool{}
	if unknown := own.unknown(values); len(unknown) > 0 && ch.adopted == nil && ch.verb == Applied {
		before, known := c.appliedHostFieldsLocked()
		switch {
		case known && ch.byThisMachine():
			own.learn(unknown, before)
		case known:
			for i := range unknown {
				refused[unknown[i].Key()] = !before[unknown[i].Key()]
			}
		}
		if !ch.dry && own.unsaved {
			h.own, h.unsaved = own.own, own.unsaved
			c.saveHostFieldsLocked()
		}
	}
	if ch.hostAllowed {
		return nil
	}
	return ch.withholdAll(cfg, own.unknown(values), refused)
}

// byThisMachine reports whether a change comes from the files of this machine or from a local user:
// its values are set here. A session or token is no proof, because every machine with the key of the
// shared store can create one.
func (ch *change) byThisMachine() bool { return ch.cause.Via == ViaFile || ch.cause.Via == ViaCLI }

// unknown returns the values that need a permission and were not set on this machine.
func (h *hostFields) unknown(values []diff.HostValue) (out []diff.HostValue) {
	var own map[string]bool
	for i := range values {
		v := &values[i]
		if v.Local() == "" {
			continue
		}
		if own == nil {
			own = make(map[string]bool, len(h.own))
			for _, key := range h.own {
				own[key] = true
			}
		}
		if !own[v.Key()] {
			out = append(out, *v)
		}
	}
	return out
}

// appliedHostFieldsLocked returns the keys of the values that the files had when this machine
// wrote them last, and of those that it was about to write; false if they are not known.
func (c *Control) appliedHostFieldsLocked() (map[string]bool, bool) {
	keys, wrote := map[string]bool{}, c.readApplied()
	note := func(cfg *config.Config) {
		values, _ := (*diff.HostIndex)(nil).Values(cfg)
		for i := range values {
			keys[values[i].Key()] = true
		}
	}
	if wrote.Revision == 0 {
		if c.mu.digested == nil {
			return nil, false
		}
		note(c.mu.digested)
	}
	for _, a := range []*appliedState{&wrote, wrote.Next} {
		if a == nil || a.Revision == 0 {
			continue
		}
		cfg := c.keptAs(a)
		if cfg == nil {
			return nil, false
		}
		note(cfg)
	}
	return keys, true
}

// keptAs returns the configuration of a revision whose documents are those that this machine
// has noted, nil if there is none.
func (c *Control) keptAs(a *appliedState) *config.Config {
	docs, err := c.kept(a.Revision)
	if err != nil || len(docs.List) != len(a.Documents) {
		return nil
	}
	for _, d := range docs.List {
		if a.Documents[filepath.Base(d.Name)] != history.DigestOf(d.Data) {
			return nil
		}
	}
	cfg, _, problems := config.LoadDocuments(docs, nil)
	if len(problems) > 0 {
		return nil
	}
	return cfg
}

// withholdAll withholds the objects with these values, and refuses the change for the values
// with a key in refused.
func (ch *change) withholdAll(cfg *config.Config, values []diff.HostValue, refused map[string]bool) error {
	w := &config.Withhold{Objects: map[[2]string]bool{}, Pages: map[[2]string]bool{}, Logos: map[string]bool{}, Logs: map[string]bool{}}
	report := cfg.Report()
	remedy := fmt.Sprintf("create the file %s on this machine to allow it", filepath.Join(ch.control.options.StateDir, AllowHostFields))
	for i := range values {
		v := &values[i]
		if refused[v.Key()] {
			report.Add(schema.Problem{Field: v.Path, What: fmt.Sprintf("the %s cannot be set through the API where several machines share the configuration", useNoun(v)), Remedy: remedy + ", or edit the configuration file on it"})
			continue
		}
		effect := withholdOne(w, v)
		p := schema.Problem{Field: v.Path, What: fmt.Sprintf("the %s is not used on this machine, because another machine has set it", useNoun(v)), Remedy: remedy}
		if effect == "" {
			report.Add(p)
			continue
		}
		p.What += ": " + effect
		report.AddNote(p)
		if len(ch.withheldValues) < maxWithheldTexts {
			ch.withheldValues = append(ch.withheldValues, withheldValue{v.Kind, v.Name, shown.Short(p.Error(), maxWithheldText)})
		}
	}
	if problems := report.Problems(); len(problems) > 0 {
		return &Refused{Problems: problems}
	}
	ch.notes = append(ch.notes, report.Notes()...)
	ch.withheld = w
	return nil
}

// useNoun returns the name of a value for messages.
func useNoun(v *diff.HostValue) string {
	switch v.Local() {
	case diff.Runs:
		return "command"
	case diff.Serves:
		return "folder " + v.Text
	case diff.Page, diff.Logo, diff.Logs:
		return "file " + v.Text
	case diff.Socket:
		return "socket " + v.Text
	case diff.Proves:
		return "client certificate " + v.Text
	}
	return "value " + v.Text
}

// withholdOne withholds the object of a value and returns the effect, or "" if the object cannot be
// withheld.
func withholdOne(w *config.Withhold, v *diff.HostValue) (effect string) {
	object := [2]string{v.Kind, v.Name}
	if v.Kind == "discovery" {
		_, rest := steps.CutStep(v.Path)
		_, rest = steps.CutStep(rest)
		name, _ := steps.CutStep(rest)
		object[1] = name.Name
	}
	paged := v.Kind == "proxies" || v.Kind == "policies" || v.Kind == "defaults"
	switch {
	case v.Local() == diff.Logs:
		w.Logs[(&config.ProxyLog{Path: v.Value}).File()] = true
		if v.Kind == "access_log" {
			return "the access log is written to stdout"
		}
		return "its lines are in the common access log"
	case v.Local() == diff.Page && paged && isErrorPage(v.Path):
		w.Pages[object] = true
		return "the built-in error pages are used"
	case v.Local() == diff.Logo && v.Kind == "proxies":
		w.Logos[v.Name] = true
		return "the sign-in page has no logo"
	case !config.CanWithhold(v.Kind):
		return ""
	}
	w.Objects[object] = true
	return map[string]string{
		"proxies": "the proxy responds with 503", "policies": "proxies with the policy respond with 503", "defaults": "all proxies respond with 503",
		"acme": "this machine orders no certificates with the entry", "webhooks": "this machine sends nothing to the webhook", "notices": "this machine sends no notice",
		"discovery": "this machine does not use the provider",
	}[v.Kind]
}

// isErrorPage reports whether a path belongs to a field of an error page.
func isErrorPage(path string) bool {
	for path != "" {
		step, rest := steps.CutStep(path)
		if next, _ := steps.CutStep(rest); step.Name == "error_pages" && next.Index >= 0 {
			return true
		}
		path = rest
	}
	return false
}

// noteHostFieldsLocked records the values that an applied change has withheld.
func (c *Control) noteHostFieldsLocked(ch *change) {
	if !ch.discovered() {
		c.mu.host.allowed, c.mu.host.again, c.mu.host.withheld = ch.hostAllowed, time.Time{}, ch.withheldValues
	}
}

// hostFieldsRetry is the time between two attempts to apply the values that this machine allows.
const hostFieldsRetry = 30 * time.Second

// followHostFields applies the configuration again when the file that allows the values of other
// machines was created or removed.
func (c *Control) followHostFields() {
	if !c.mu.TryLock() {
		return // a change is being made; the next call checks again
	}
	h := &c.mu.host
	c.saveHostFieldsLocked()
	if c.mu.frozen || c.hostFieldsAllowed() == h.allowed || time.Now().Before(h.again) {
		c.mu.Unlock()
		return
	}
	h.again = time.Now().Add(hostFieldsRetry)
	c.mu.tried = "" // values that were refused so far may be allowed now
	c.mu.Unlock()
	c.changed()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hostFieldsAllowed() == h.allowed || c.mu.frozen || c.mu.closed || c.mu.degraded {
		return
	}
	_ = c.reloadLocked(ViaFile) // it is logged and counted
}
