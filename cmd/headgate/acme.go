package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"headgate/client"
	"headgate/internal/certs/acme"
)

func newACME() *cobra.Command {
	cmd := group("acme", "Show and order certificates by ACME", `acme shows the certificates issued by ACME: their states, why one is missing, what to do,
and when the next attempt is. It also orders and renews them.`)
	cmd.Example = `  headgate acme status
  headgate acme status shop.example.com
  headgate acme preflight
  headgate acme order shop.example.com`
	cmd.AddCommand(newACMEStatus(), newACMEOrder(), newACMERenew(), newACMEPreflight(), newACMERollover())
	return cmd
}

// namesHelp describes the argument of the commands.
const namesHelp = `

NAME is the name of a certificate or a host that it covers.`

func newACMEStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Show the state of ACME certificates",
		Long: `status lists the certificates issued by ACME with their states: idle, preflight, blocked,
pending, ready, processing, valid, failed. With NAME it also shows the last orders, step
by step, with the error messages of the certificate authority and what they mean.` + namesHelp + reachHelp,
		Example: `  headgate acme status
  headgate acme status '*.example.com'
  headgate acme status shop.example.com -o json`,
		Args: arguments(0, 1),
	}
	r, output := addReach(cmd), addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return r.withRemote(func(ctx context.Context, to *remote) error {
			if len(args) == 0 {
				all, err := askList[*client.Order](ctx, to, "/orders")
				if err != nil {
					return err
				}
				if output.value == "json" {
					return writeJSON(cmd, all.raw)
				}
				return printACME(cmd.OutOrStdout(), all.items, false)
			}
			var raw json.RawMessage
			if err := to.Do(ctx, http.MethodGet, orderPath(args[0], ""), nil, &raw); err != nil {
				return err
			}
			if output.value == "json" {
				return writeJSON(cmd, raw)
			}
			record := &client.Order{}
			if err := json.Unmarshal(raw, record); err != nil {
				return fmt.Errorf("read the response of %s: %w", to.Name(), err)
			}
			return printACME(cmd.OutOrStdout(), []*client.Order{record}, true)
		})
	}
	return cmd
}

// withRemote calls a func with the headgate that runs.
func (r *reach) withRemote(do func(context.Context, *remote) error) error {
	ctx := r.cmd.Context()
	to, err := r.open(ctx)
	if err != nil {
		return err
	}
	defer to.close()
	return do(ctx, to)
}

// orderPath returns the path of a certificate by ACME, or of what is done to it.
func orderPath(name, action string) string {
	path := "/orders/" + url.PathEscape(name)
	if action != "" {
		path += "/" + action
	}
	return path
}

func newACMEOrder() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "order [NAME]",
		Short: "Order a certificate now",
		Long: `order orders a certificate now instead of waiting for the next attempt, and shows each step
until the certificate is issued or the order fails. Without NAME it orders every
certificate that is not valid.` + namesHelp + ` A valid certificate is not ordered again; use renew for that.` + reachHelp,
		Example: `  headgate acme order
  headgate acme order shop.example.com`,
		Args: arguments(0, 1),
	}
	f := addOrdering(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return f.reach.withRemote(func(ctx context.Context, to *remote) error {
			if len(args) > 0 {
				return f.start(ctx, to, "order", args)
			}
			all, err := askList[*client.Order](ctx, to, "/orders")
			if err != nil {
				return err
			}
			var names []string
			for _, r := range all.items {
				if r.State != string(acme.Valid) {
					names = append(names, r.Name)
				}
			}
			return f.start(ctx, to, "order", names)
		})
	}
	return cmd
}

func newACMERenew() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "renew NAME",
		Short: "Renew a certificate now, even if it is still valid",
		Long: `renew orders a new certificate now, even if the current one is still valid, and shows each
step. The order counts against the rate limits of the certificate authority: Let's Encrypt
issues five certificates a week for the same set of names.` + namesHelp + reachHelp,
		Example: `  headgate acme renew shop.example.com`,
		Args:    oneName("certificate"),
	}
	f := addOrdering(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return f.reach.withRemote(func(ctx context.Context, to *remote) error { return f.start(ctx, to, "renew", args) })
	}
	return cmd
}

func newACMEPreflight() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "preflight [NAME]",
		Short: "Check whether an order can succeed",
		Long: `preflight checks whether an order for a certificate can succeed, without placing it. It
checks the name, its addresses and CAA records in DNS, the ports of headgate, and known
rate limits. A certificate that is certain to fail is reported as blocked, with exit code
1; anything doubtful is a warning. Without NAME it checks every certificate.` + namesHelp + reachHelp,
		Example: `  headgate acme preflight
  headgate acme preflight shop.example.com -o json`,
		Args: arguments(0, 1),
	}
	r, output := addReach(cmd), addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return r.withRemote(func(ctx context.Context, to *remote) error {
			names := args
			if len(args) == 0 {
				all, err := askList[*client.Order](ctx, to, "/orders")
				if err != nil {
					return err
				}
				for _, r := range all.items {
					names = append(names, r.Name)
				}
			}
			return preflight(ctx, cmd, to, names, output.value == "json")
		})
	}
	return cmd
}

// preflight checks certificates one after the other and reports the results.
func preflight(ctx context.Context, cmd *cobra.Command, to *remote, names []string, asJSON bool) error {
	all, blocked := []json.RawMessage{}, 0
	out := cmd.OutOrStdout()
	for _, name := range names {
		var raw json.RawMessage
		var o client.Preflight
		err := to.Do(ctx, http.MethodPost, orderPath(name, "preflight"), struct{}{}, &raw)
		if err == nil {
			err = json.Unmarshal(raw, &o)
		}
		if err != nil {
			return err
		}
		if o.Blocked {
			blocked++
		}
		if all = append(all, raw); !asJSON {
			printPreflight(screen{out}, &o)
		}
	}
	if asJSON {
		if err := writeJSON(cmd, all); err != nil {
			return err
		}
	} else if len(names) == 0 {
		fmt.Fprintln(out, "no certificates are managed by ACME")
	}
	if blocked > 0 {
		return fmt.Errorf("%d of %d blocked: an order would fail, so none is placed", blocked, len(names))
	}
	return nil
}

// printPreflight writes the result of a preflight.
func printPreflight(out io.Writer, o *client.Preflight) {
	var by []string
	for _, c := range o.Challenges {
		by = append(by, c.Name+" by "+c.Challenge)
	}
	state := "an order can be placed"
	if o.Blocked {
		state = "blocked"
	}
	fmt.Fprintf(out, "%s: %s\n", o.Name, state)
	if len(by) > 0 {
		fmt.Fprintf(out, "  %s\n", strings.Join(by, ", "))
	}
	for _, w := range o.Warnings {
		fmt.Fprintf(out, "  ! %s\n", w)
	}
	if o.Trouble != nil {
		fmt.Fprintf(out, "  %s\n", strings.ReplaceAll(wordsOf(o.Trouble), "\n", "\n  "))
	}
}

func newACMERollover() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollover ENTRY",
		Short: "Replace the key of an ACME account",
		Long: `rollover replaces the account key of an acme entry at its certificate authority.
Certificates and orders are not affected.` + reachHelp,
		Example: `  headgate acme rollover main`,
		Args:    oneName("acme entry"),
	}
	r, output := addReach(cmd), addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return r.withRemote(func(ctx context.Context, to *remote) error {
			if err := to.Do(ctx, http.MethodPost, "/acme/"+url.PathEscape(args[0])+"/rollover", struct{}{}, nil); err != nil {
				return err
			}
			return done(cmd, output, map[string]string{"entry": args[0]}, "account key of %s replaced", args[0])
		})
	}
	return cmd
}

// ordering is what commands have in common that place orders.
type ordering struct {
	cmd     *cobra.Command
	reach   *reach
	output  *choice
	noWait  *bool
	timeout *time.Duration
}

func addOrdering(cmd *cobra.Command) *ordering {
	return &ordering{
		cmd: cmd, reach: addReach(cmd), output: addOutput(cmd),
		noWait:  cmd.Flags().Bool("no-wait", false, "return as soon as the order has started"),
		timeout: cmd.Flags().Duration("timeout", 10*time.Minute, "how long to wait for the orders; they continue afterwards"),
	}
}

// askPause is the pause between two looks at an order.
const askPause = 300 * time.Millisecond

// start requests orders and shows their progress.
func (f *ordering) start(ctx context.Context, to *remote, action string, names []string) error {
	ctx, cancel := context.WithTimeout(ctx, *f.timeout)
	defer cancel()
	began := make([]*client.Order, 0, len(names))
	for _, name := range names {
		was := &client.Order{} // before, so that no end is missed
		if err := to.Do(ctx, http.MethodGet, orderPath(name, ""), nil, was); err != nil {
			return err
		}
		if err := to.Do(ctx, http.MethodPost, orderPath(was.Name, action), struct{}{}, nil); err != nil {
			return err
		}
		began = append(began, was)
	}
	ended, failed := []*client.Order{}, 0
	for _, was := range began {
		is := was
		if !*f.noWait {
			var err error
			if is, err = f.wait(ctx, to, was); err != nil {
				return err
			}
			if is.State != string(acme.Valid) {
				failed++
			}
		}
		ended = append(ended, is)
	}
	if err := f.printResults(ended); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d certificates were not issued", failed, len(began))
	}
	return nil
}

// wait waits until an order has ended that began after a record.
func (f *ordering) wait(ctx context.Context, to *remote, was *client.Order) (*client.Order, error) {
	for {
		is := &client.Order{}
		if err := to.Do(ctx, http.MethodGet, orderPath(was.Name, ""), nil, is); err != nil {
			return nil, timedOut(ctx, err, was.Name)
		}
		switch is.State {
		case string(acme.Valid), string(acme.Blocked), string(acme.Failed):
			if !is.Since.Equal(was.Since) || !is.NextTry.Equal(was.NextTry) || !is.NotBefore.Equal(was.NotBefore) || is.Failures != was.Failures {
				return is, nil
			}
		}
		select {
		case <-ctx.Done():
			return nil, timedOut(ctx, ctx.Err(), was.Name)
		case <-time.After(askPause):
		}
	}
}

// timedOut returns the error for an order that takes longer than the command waits.
func timedOut(ctx context.Context, err error, name string) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("the order for %s is still in progress; run headgate acme status to follow it", name)
	}
	return err
}

func (f *ordering) printResults(ended []*client.Order) error {
	if f.output.value == "json" {
		return writeJSON(f.cmd, ended)
	}
	if len(ended) == 0 {
		_, err := fmt.Fprintln(f.cmd.OutOrStdout(), "all ACME certificates are valid")
		return err
	}
	for _, r := range ended { // the steps of older orders are in the status
		if n := len(r.Timeline); n > 1 {
			r.Timeline = r.Timeline[n-1:]
		}
	}
	return printACME(f.cmd.OutOrStdout(), ended, !*f.noWait)
}

// printACME writes certificates as a table, and with orders what happened to each.
func printACME(out io.Writer, records []*client.Order, orders bool) error {
	w := tabwriter.NewWriter(screen{out}, 0, 0, 2, ' ', 0)
	tableOfACME(w, records)
	for _, r := range records {
		if !orders {
			break
		}
		for _, warning := range r.Warnings {
			fmt.Fprintf(w, "! %s\n", warning)
		}
		if r.Trouble != nil {
			fmt.Fprintf(w, "\n%s\n", wordsOf(r.Trouble))
		}
		for i := range r.Timeline {
			printOrder(w, &r.Timeline[i])
		}
	}
	return w.Flush()
}

// tableOfACME writes one line for each certificate.
func tableOfACME(w io.Writer, records []*client.Order) {
	if len(records) == 0 {
		fmt.Fprintln(w, "no certificates are managed by ACME")
		return
	}
	fmt.Fprint(w, "CERTIFICATE\tSTATE\tSINCE\tENTRY\tENDS\tNEXT TRY\tWHY\n")
	for _, r := range records {
		ends, next, why := "-", "-", ""
		if !r.NotAfter.IsZero() {
			ends = r.NotAfter.Local().Format(time.DateOnly)
		}
		if !r.NextTry.IsZero() {
			next = r.NextTry.Local().Format(time.DateTime)
		}
		if r.Trouble != nil {
			why = r.Trouble.Code + ": " + r.Trouble.Message
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", cmp.Or(strings.Join(r.Names, " "), r.Name), r.State, ago(r.Since), r.Entry, ends, next, why)
	}
}

// wordsOf returns the text of a problem, with the authority's message and how to fix it.
func wordsOf(t *client.OrderProblem) string {
	text := t.Code + ": " + t.Message
	if t.Problem != nil {
		text += fmt.Sprintf("\n  certificate authority: %s (%s)", t.Problem.Detail, t.Problem.Type)
		for _, s := range t.Problem.Subproblems {
			text += fmt.Sprintf("\n    %s: %s (%s)", s.Name, s.Detail, s.Type)
		}
	}
	if t.Hint != "" {
		text += "\n  remedy: " + t.Hint
	}
	return text
}

// printOrder writes what happened to one order.
func printOrder(w io.Writer, a *client.OrderAttempt) {
	end := "in progress"
	switch {
	case a.Issued && a.Staging:
		end = "would have been issued"
	case a.Issued:
		end = "issued"
	case !a.Ended.IsZero():
		end = "failed"
	}
	if a.Staging {
		end += " (staging)"
	}
	fmt.Fprintf(w, "\nORDER OF %s AT %s: %s\n", a.Began.Local().Format(time.DateTime), a.Directory, end)
	for _, s := range a.Steps {
		fmt.Fprintf(w, "  %s\t%s\t%s\n", s.At.Local().Format(time.TimeOnly), s.State, s.Text)
	}
	if a.Trouble != nil {
		fmt.Fprintf(w, "  %s\n", strings.ReplaceAll(wordsOf(a.Trouble), "\n", "\n  "))
	}
}
