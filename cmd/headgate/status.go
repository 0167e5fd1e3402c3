package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"headgate/client"
)

// The bounds of the status page: how long it may take and how large it may be, in
// bytes.
const (
	statusTimeout = 10 * time.Second
	statusSize    = 256 << 20
)

// statusFlags are the flags of the command status.
type statusFlags struct {
	reach      *reach
	all, watch *bool
	node       *string
	interval   *time.Duration
	output     *choice
}

func newStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [PROXY]",
		Short: "Show the state of ports, proxies and servers",
		Long: `status shows the state of ports, proxies and servers. It lists the servers that are not
healthy; --all lists all servers, and PROXY lists the servers of that proxy with their last
health checks. --node shows the state of another machine of the group.` + reachHelp,
		Example: `  headgate status
  headgate status shop
  headgate status --watch
  headgate status --node web2
  headgate status -o json`,
		Args: arguments(0, 1),
	}
	f := statusFlags{
		reach:    addReach(cmd),
		all:      cmd.Flags().BoolP("all", "a", false, "list every server"),
		watch:    cmd.Flags().BoolP("watch", "w", false, "refresh until interrupted"),
		node:     addNode(cmd),
		interval: cmd.Flags().Duration("interval", time.Second, "refresh interval of --watch"),
		output:   addOutput(cmd),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		proxy := ""
		if len(args) > 0 {
			proxy = args[0]
		}
		if !*f.watch {
			return f.show(cmd.Context(), cmd.OutOrStdout(), proxy)
		}
		if *f.interval < 100*time.Millisecond {
			return usage("invalid interval %v: expected at least 100ms", *f.interval)
		}
		return f.watchStatus(cmd.Context(), cmd.OutOrStdout(), proxy)
	}
	return cmd
}

// addNode adds the flag with which a command shows the state of another machine. It has no
// environment variable: HEADGATE_NODE is the name of this machine.
func addNode(cmd *cobra.Command) *string {
	node := cmd.Flags().String("node", "", "`NAME` of the machine to show; by default the one that the command reaches")
	cmd.Flags().Lookup("node").Annotations = map[string][]string{noVariable: nil}
	return node
}

// show prints the status once.
func (f *statusFlags) show(ctx context.Context, out io.Writer, proxy string) error {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	to, err := f.reach.open(ctx)
	if err != nil {
		return err
	}
	defer to.close()
	q := url.Values{}
	if proxy != "" {
		q.Set("proxy", proxy)
	}
	target := "/status"
	if *f.node != "" {
		q.Set("node", *f.node)
		target = client.Prefix + target // the page is about the machine that answers
	}
	rs, err := to.Send(ctx, http.MethodGet, target+"?"+q.Encode(), nil, nil)
	if err != nil {
		return err
	}
	defer rs.Body.Close()
	if rs.StatusCode != http.StatusOK {
		return client.ProblemOf(rs)
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, rs.Body, statusSize))
	if err != nil {
		return fmt.Errorf("read the status of %s: %w", to.Name(), err)
	}
	if f.output.value == "json" {
		_, err = out.Write(plainJSON(body))
		return err
	}
	var s struct {
		statusPage
		ACME json.RawMessage `json:"acme"` // is not shown; the page and the API differ in it
	}
	if err := json.Unmarshal(body, &s); err != nil {
		return fmt.Errorf("read the status of %s: %w", to.Name(), err)
	}
	return s.print(screen{out}, *f.all || proxy != "", proxy != "")
}

// watchStatus prints the status until it is interrupted. It goes on when headgate
// does not answer for a while.
func (f *statusFlags) watchStatus(ctx context.Context, out io.Writer, proxy string) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	tick := time.NewTicker(*f.interval)
	defer tick.Stop()
	for {
		var page strings.Builder
		if err := f.show(ctx, &page, proxy); err != nil && ctx.Err() == nil {
			fmt.Fprintf(screen{&page}, "%v\n", err)
		}
		if ctx.Err() != nil {
			return nil
		}
		if isTerminal(out) {
			fmt.Fprint(out, "\x1b[H\x1b[2J")
		}
		if _, err := io.WriteString(out, page.String()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// isTerminal reports whether a writer is a terminal.
func isTerminal(out io.Writer) bool {
	if s, ok := out.(screen); ok {
		out = s.w
	}
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
