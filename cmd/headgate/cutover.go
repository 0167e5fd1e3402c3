package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"headgate/client"
	"headgate/internal/control"
	"headgate/internal/migrate/cutover"
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

The change must be confirmed within --confirm. headgate watches the rate of 5xx responses and
the number of healthy servers for three quarters of that time, and then confirms the change;
if a limit is exceeded it reverts the ports at once. You can interrupt the command: headgate
continues to watch. If headgate is killed in this time, it starts with the previous ports. With
--yes, cutover does not prompt and headgate does not watch: the command returns when the change
is active, and the ports are reverted unless you run headgate confirm in time.

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
		c := &cutoverRun{cutoverFlags: f, to: to, in: cmd.InOrStdin(), out: cmd.OutOrStdout()}
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

// cutoverRun is one run of the command.
type cutoverRun struct {
	cutoverFlags
	to    *remote
	in    io.Reader
	out   io.Writer
	moves []client.MovedPort
	// status is the status before the change.
	status cutoverStatus
}

// cutoverStatus is the part of the status that the command needs.
type cutoverStatus struct {
	control.Status
	ETag string `json:"etag"`
}

// moveText describes the move of a port.
func moveText(m client.MovedPort) string { return fmt.Sprintf("%s %s -> %s", m.Port, m.From, m.To) }

func (c *cutoverRun) printf(format string, args ...any) {
	fmt.Fprintln(c.out, printable(fmt.Sprintf(format, args...)))
}

// run moves the ports.
func (c *cutoverRun) run(ctx context.Context) error {
	if err := c.to.Do(ctx, http.MethodGet, "/status", nil, &c.status); err != nil {
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
		if m.From != m.To {
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
	c.printf("the ports are reverted if more than %g%% of at least %d responses are 5xx, if less than %g%% of the servers that are healthy now remain healthy, or if the change is not confirmed within %s", *c.maxErrors, cutover.MinResponses, *c.minHealthy, *c.confirm)
	if !*c.yes && !c.confirmed("take over?") {
		return errors.New("nothing was changed")
	}
	done, err := c.start(ctx)
	if err != nil {
		return err
	}
	c.printf("revision %08d is active until %s", done.Revision, done.Until.Local().Format(time.DateTime))
	if *c.yes {
		c.printf("run headgate confirm to keep it, or headgate cutover --back to revert it")
		return nil
	}
	return c.follow(ctx, done)
}

// choose finds the port of a protocol that gets a number.
func (c *cutoverRun) choose(protocol, want string) (m client.MovedPort, err error) {
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
	m.Port, m.From = found[0].Name, found[0].Address
	at, err := netip.ParseAddrPort(m.From)
	if err != nil {
		return m, fmt.Errorf("read the address of port %s: %w", m.Port, err)
	}
	m.To = netip.AddrPortFrom(at.Addr(), uint16(number)).String()
	return m, nil
}

// confirmed prints a question, and reports whether the answer is yes.
func (c *cutoverRun) confirmed(question string) bool {
	fmt.Fprintf(c.out, "%s [y/N] ", question)
	line, _ := bufio.NewReader(io.LimitReader(c.in, 1024)).ReadString('\n') // no answer is no
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}

// request returns the body, with limits unless --yes leaves the decision to the caller.
func (c *cutoverRun) request() *client.CutoverInput {
	q := &client.CutoverInput{}
	for _, m := range c.moves {
		q.Moves = append(q.Moves, client.CutoverRequest{Port: m.Port, To: m.To})
	}
	if !*c.yes {
		q.Watch = &client.CutoverWatch{MaxErrorsPercent: *c.maxErrors, MinHealthyPercent: *c.minHealthy}
	}
	return q
}

// maxRereads bounds how often a request is repeated because of other changes.
const maxRereads = 5

// post requests the cutover, or tries it out. Changes by others meanwhile, for example while
// the old proxy still had its ports, do not matter unless they moved these ports.
func (c *cutoverRun) post(ctx context.Context, dryRun bool) (done client.Cutover, err error) {
	q := url.Values{"confirm_within": {c.cutoverFlags.confirm.String()}}
	if dryRun {
		q.Set("dry_run", "true")
	}
	for range maxRereads {
		err = c.to.Do(ctx, http.MethodPost, "/cutover?"+q.Encode(), c.request(), &done, client.IfMatch(c.status.ETag))
		if !hasCode(err, "stale") {
			break
		}
		if err := c.reread(ctx); err != nil {
			return done, err
		}
	}
	return done, err
}

// reread reads the status again. The ports must have the addresses that they are moved from.
func (c *cutoverRun) reread(ctx context.Context) error {
	if err := c.to.Do(ctx, http.MethodGet, "/status", nil, &c.status); err != nil {
		return err
	}
	for _, m := range c.moves {
		if !slices.ContainsFunc(c.status.Ports, func(p ports.State) bool { return p.Name == m.Port && p.Address == m.From }) {
			return fmt.Errorf("port %s was moved from %s or removed by another change; nothing was changed; run headgate cutover again", m.Port, m.From)
		}
	}
	return nil
}

// Between two tries of an address that is in use passes as much time as the last try took,
// within these bounds, so that tries do not use up a processor.
const (
	soonest = 20 * time.Millisecond
	latest  = 250 * time.Millisecond
)

// start moves the ports in one change. While an address is in use it waits for as long as
// the flags say.
func (c *cutoverRun) start(ctx context.Context) (client.Cutover, error) {
	end, waiting := time.Now().Add(*c.wait), false
	for {
		done, err := c.post(ctx, false)
		if err == nil || !inUse(err) || !time.Now().Before(end) {
			return done, err
		}
		if !waiting {
			waiting = true
			c.printf("waiting up to %s: %v", *c.wait, err)
		}
		if err := c.awaitFree(ctx, end); err != nil {
			return done, err
		}
	}
}

// awaitFree waits until the addresses are free, or the time is over. It uses dry runs,
// since a rejected change is logged and published as an event.
func (c *cutoverRun) awaitFree(ctx context.Context, end time.Time) error {
	for time.Now().Before(end) {
		began := time.Now()
		_, err := c.post(ctx, true)
		if ctx.Err() == nil && !inUse(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.New("interrupted while the ports were in use; nothing was changed")
		case <-time.After(min(max(time.Since(began), soonest), latest)):
		}
	}
	return nil
}

// inUse reports whether a change was rejected because an address is in use.
func inUse(err error) bool { return hasCode(err, "address_in_use") }

// hasCode reports whether a request was refused with a code.
func hasCode(err error, code string) bool {
	var r *client.Problem
	return errors.As(err, &r) && r.Code == code
}
