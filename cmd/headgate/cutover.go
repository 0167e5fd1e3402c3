package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"headgate/internal/control"
	"headgate/internal/ports"
)

// cutoverFlags are the flags of the command cutover.
type cutoverFlags struct {
	reach              *reach
	http, https, http3 *string
	confirm, wait      *time.Duration
	report             *string
	yes, back, noDNS   *bool
	maxErrors          *float64
	minHealthy         *float64
}

func newCutover() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cutover --http 80 --https 443 | --back",
		Short: "Take over the ports of another proxy",
		Long: `cutover moves the ports of the running headgate to the port numbers of the proxy that it
replaces, in one change. It first shows which process uses the new addresses and the state
of the certificates and DNS of the hosts, and asks for confirmation. With --wait it waits
until the old proxy releases its ports. Requests in progress on the old addresses complete.

The change must be confirmed within --confirm. The command watches the rate of 5xx
responses and the number of healthy servers for three quarters of that time, and then
confirms the change; if a limit is exceeded it reverts the ports at once. The ports are also
reverted if the command is interrupted and headgate confirm is not run in time, and at the
next start if the process was killed. --yes does not ask, and returns when the change is
active.

--back returns the ports to their addresses before the last cutover. Other changes made
since then are kept.` + reachHelp,
		Example: `  headgate cutover --http 80 --https 443
  headgate cutover --http 80 --https 443 --http3 443 --confirm 10m --wait
  headgate cutover --http web=80 --yes && curl -f http://shop.example.com/ && headgate confirm
  headgate cutover --back`,
		Args: noArguments,
	}
	flags := cmd.Flags()
	f := cutoverFlags{
		reach:      addReach(cmd),
		http:       flags.String("http", "", "`PORT` number of the http port, or NAME=PORT if there are several"),
		https:      flags.String("https", "", "`PORT` number of the https port, or NAME=PORT"),
		http3:      flags.String("http3", "", "`PORT` number of the http3 port, or NAME=PORT"),
		confirm:    flags.Duration("confirm", 10*time.Minute, "time limit for confirming the change before the ports are reverted, 10s to 1h"),
		wait:       flags.Duration("wait", 0, "how long to wait for the old proxy to close its ports; 10m if no value is given"),
		report:     flags.String("report", "", "report `FILE` written by headgate compare -o json, to show its result"),
		yes:        flags.BoolP("yes", "y", false, "do not ask, and return when the change is active"),
		back:       flags.Bool("back", false, "return the ports to their addresses before the last cutover"),
		noDNS:      flags.Bool("no-dns", false, "do not resolve the hosts"),
		maxErrors:  flags.Float64("max-errors", 5, "revert if more than this `PERCENT` of at least 20 responses are 5xx"),
		minHealthy: flags.Float64("min-healthy", 50, "revert if less than this `PERCENT` of the servers that were healthy remain healthy"),
	}
	flags.Lookup("wait").NoOptDefVal = "10m"
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := f.check(); err != nil {
			return err
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		to, err := f.reach.open(ctx)
		if err != nil {
			return err
		}
		defer to.close()
		c := &cutover{cutoverFlags: f, to: to, in: cmd.InOrStdin(), out: cmd.OutOrStdout()}
		if *f.back {
			return c.goBack(ctx)
		}
		return c.run(ctx)
	}
	return cmd
}

func (f *cutoverFlags) check() error {
	named := *f.http != "" || *f.https != "" || *f.http3 != ""
	switch {
	case *f.back && named:
		return usage("--back cannot be combined with --http, --https or --http3")
	case !*f.back && !named:
		return usage("specify --http, --https or --http3 with the port to take over, like --http 80 --https 443, or --back")
	case *f.confirm < control.MinConfirm || *f.confirm > control.MaxConfirm:
		return usage("--confirm must be %s to %s", control.MinConfirm, control.MaxConfirm)
	case *f.wait < 0 || *f.wait > 24*time.Hour:
		return usage("--wait must be at most 24h")
	case *f.maxErrors < 0 || *f.maxErrors > 100 || *f.minHealthy < 0 || *f.minHealthy > 100:
		return usage("--max-errors and --min-healthy must be 0 to 100")
	}
	return nil
}

// cutover is one run of the command.
type cutover struct {
	cutoverFlags
	to    *remote
	in    io.Reader
	out   io.Writer
	moves []move
	// status is the status before the change.
	status cutoverStatus
}

// cutoverStatus is the part of the status that is used.
type cutoverStatus struct {
	control.Status
	ETag string `json:"etag"`
}

// move is a port that gets another address.
type move struct {
	name     string
	from, to netip.AddrPort
}

func (m move) String() string { return fmt.Sprintf("%s %s -> %s", m.name, m.from, m.to) }

// movePattern reads what String writes.
var movePattern = regexp.MustCompile(`(\S+) (\S+) -> (\S+?)(?:, |$)`)

// The prefixes of the reasons of revisions. --back finds a cutover by the first.
const (
	cutoverWhy = "cutover: "
	backWhy    = "cutover reverted: "
)

func (c *cutover) printf(format string, args ...any) {
	fmt.Fprintln(c.out, printable(fmt.Sprintf(format, args...)))
}

// run takes over.
func (c *cutover) run(ctx context.Context) error {
	if err := c.to.call(ctx, http.MethodGet, "/status", nil, &c.status); err != nil {
		return err
	}
	for _, w := range []struct{ protocol, want string }{{"http", *c.http}, {"https", *c.https}, {"http3", *c.http3}} {
		if w.want == "" {
			continue
		}
		m, err := c.choose(w.protocol, w.want)
		if err != nil {
			return err
		}
		if m.from != m.to {
			c.moves = append(c.moves, m)
		}
	}
	if len(c.moves) == 0 {
		c.printf("the ports already have these numbers; nothing was changed")
		return nil
	}
	if err := c.preconditions(ctx); err != nil {
		return err
	}
	c.printf("the ports are reverted if more than %g%% of at least %d responses are 5xx, if less than %g%% of the servers that are healthy now remain healthy, or if the change is not confirmed within %s", *c.maxErrors, minAnswers, *c.minHealthy, *c.confirm)
	if !*c.yes && !c.confirmed("take over?") {
		return errors.New("nothing was changed")
	}
	before, err := c.to.counts(ctx)
	if err != nil {
		return err
	}
	done, err := c.apply(ctx, c.moves, cutoverWhy, *c.confirm)
	if err != nil {
		return err
	}
	c.printf("revision %s is active until %s", done.Revision, done.Until.Local().Format(time.DateTime))
	if *c.yes {
		c.printf("run headgate confirm to keep it, or headgate cutover --back to revert it")
		return nil
	}
	return c.watch(ctx, done, before)
}

// choose finds the port of a protocol that gets a number.
func (c *cutover) choose(protocol, want string) (m move, err error) {
	name, text, named := strings.Cut(want, "=")
	if !named {
		name, text = "", want
	}
	number, err := strconv.ParseUint(text, 10, 16)
	if err != nil || number == 0 {
		return m, usage("invalid --%s %q: expected a port number like 80, or NAME=80", protocol, want)
	}
	var found []ports.State
	for _, p := range c.status.Ports {
		if string(p.Protocol) == protocol && p.State != "draining" && p.State != "inactive" && (!named || p.Name == name) {
			found = append(found, p)
		}
	}
	switch {
	case len(found) == 0 && named:
		return m, fmt.Errorf("there is no active port %s with protocol %s; run headgate status to list the ports", name, protocol)
	case len(found) == 0:
		return m, fmt.Errorf("there is no active port with protocol %s; omit --%s, or add such a port to the configuration, on any address", protocol, protocol)
	case len(found) > 1:
		return m, fmt.Errorf("ports %s and %s have protocol %s; select one with --%s NAME=%d", found[0].Name, found[1].Name, protocol, protocol, number)
	}
	m.name = found[0].Name
	if m.from, err = netip.ParseAddrPort(found[0].Address); err != nil {
		return m, fmt.Errorf("read the address of port %s: %w", m.name, err)
	}
	m.to = netip.AddrPortFrom(m.from.Addr(), uint16(number))
	return m, nil
}

// confirmed prints a question, and reports whether the answer is yes.
func (c *cutover) confirmed(question string) bool {
	fmt.Fprintf(c.out, "%s [y/N] ", question)
	line, _ := bufio.NewReader(io.LimitReader(c.in, 1024)).ReadString('\n') // no answer is no
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}

// edits are the edits of moves, in one change.
func edits(moves []move) any {
	type edit struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value string `json:"value"`
	}
	var in struct {
		Edits []edit `json:"edits"`
	}
	for _, m := range moves {
		in.Edits = append(in.Edits, edit{"set", "ports." + m.name + ".address", m.to.String()})
	}
	return in
}

// How long it takes until a busy address is tried again: as long as the last try took, so
// that tries do not take all of the machine's time.
const (
	soonest = 20 * time.Millisecond
	latest  = 250 * time.Millisecond
)

// apply moves ports in one change. While an address is busy it waits, as long as the flags
// allow.
func (c *cutover) apply(ctx context.Context, moves []move, why string, within time.Duration) (*answered, error) {
	words := make([]string, len(moves))
	for i, m := range moves {
		words[i] = m.String()
	}
	q := url.Values{"why": {why + strings.Join(words, ", ")}}
	if within > 0 {
		q.Set("confirm_within", within.String())
	}
	end, told := time.Now().Add(*c.wait), false
	for {
		var done answered
		err := c.to.change(ctx, http.MethodPost, "/config/edits?"+q.Encode(), c.status.ETag, edits(moves), &done)
		if err == nil || !busy(err) || !time.Now().Before(end) {
			return &done, err
		}
		if !told {
			told = true
			c.printf("waiting up to %s: %v", *c.wait, err)
		}
		if err := c.awaitFree(ctx, moves, end); err != nil {
			return nil, err
		}
	}
}

// awaitFree waits until the addresses are free, or the time is over. It uses dry runs,
// since a rejected change would be logged and recorded.
func (c *cutover) awaitFree(ctx context.Context, moves []move, end time.Time) error {
	for time.Now().Before(end) {
		began := time.Now()
		err := c.to.change(ctx, http.MethodPost, "/config/plan", c.status.ETag, edits(moves), &json.RawMessage{})
		if ctx.Err() == nil && !busy(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.New("interrupted while the ports were busy; nothing was changed")
		case <-time.After(min(max(time.Since(began), soonest), latest)):
		}
	}
	return nil
}

// busy reports whether a change was rejected because another process has an address.
func busy(err error) bool {
	var r *refusal
	return errors.As(err, &r) && r.Code == "not_applied" && strings.Contains(r.Detail, "address already in use")
}
