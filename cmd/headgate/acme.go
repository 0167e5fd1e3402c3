package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"headgate/internal/certs/acme"
)

func newACME() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "acme",
		Short: "Show certificates by ACME and their orders",
		Long: `acme tells how the certificates stand that come by ACME: their states, why there is
none, what to do, and when the next try is.`,
		Example: `  headgate acme status
  headgate acme status shop.example.com`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newACMEStatus())
	return cmd
}

func newACMEStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Show the states of certificates by ACME",
		Long: `status lists the certificates that come by ACME, with their states: idle, preflight,
blocked, pending, ready, processing, valid, failed. A name adds its orders, step by
step, with the authority's own words. The name is that of the certificate, or a host
that it is for.` + reachHelp,
		Example: `  headgate acme status
  headgate acme status '*.example.com'
  headgate acme status shop.example.com -o json`,
		Args: cobra.MaximumNArgs(1),
	}
	at, output := addReach(cmd), addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		records, err := askACME(cmd.Context(), at)
		if err != nil {
			return err
		}
		if len(args) > 0 {
			if records = slices.DeleteFunc(records, func(r *acme.Record) bool { return !isAbout(r, args[0]) }); len(records) == 0 {
				return fmt.Errorf("no certificate by ACME is for %q", args[0])
			}
		}
		if output.value == "json" {
			if records == nil {
				records = []*acme.Record{}
			}
			return writeJSON(cmd, records)
		}
		return printACME(cmd.OutOrStdout(), records, len(args) > 0)
	}
	return cmd
}

// askACME returns how the certificates by ACME stand.
func askACME(ctx context.Context, at *reach) ([]*acme.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	to, err := at.open(ctx)
	if err != nil {
		return nil, err
	}
	defer to.close()
	rs, err := to.send(ctx, http.MethodGet, "/status", nil, nil)
	if err != nil {
		return nil, err
	}
	defer rs.Body.Close()
	body, err := io.ReadAll(io.LimitReader(rs.Body, statusSize))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the status: %w", err)
	case rs.StatusCode != http.StatusOK:
		return nil, errors.New(strings.TrimSpace(string(body)))
	}
	var page struct {
		ACME []*acme.Record `json:"acme"`
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, fmt.Errorf("read the status: %w", err)
	}
	return page.ACME, nil
}

// isAbout reports whether a certificate has a name, or is for a host.
func isAbout(r *acme.Record, name string) bool {
	return r.Name == name || slices.Contains(r.Names, name) || acme.Covers(r.Names, name) || acme.Covers(r.Has, name)
}

// printACME writes certificates as a table, and with orders what happened to each.
func printACME(out io.Writer, records []*acme.Record, orders bool) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
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
		for _, a := range r.Timeline {
			printOrder(w, a)
		}
	}
	return w.Flush()
}

// tableOfACME writes one line for each certificate.
func tableOfACME(w io.Writer, records []*acme.Record) {
	if len(records) == 0 {
		fmt.Fprintln(w, "no certificate comes by ACME")
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

// wordsOf tells what is wrong, in the authority's words too, and what to do.
func wordsOf(t *acme.Trouble) string {
	text := t.Code + ": " + t.Message
	if t.Problem != nil {
		text += fmt.Sprintf("\n  the authority says: %s (%s)", t.Problem.Detail, t.Problem.Type)
		for _, s := range t.Problem.Sub {
			text += fmt.Sprintf("\n    %s: %s (%s)", s.Name, s.Detail, s.Type)
		}
	}
	if t.Hint != "" {
		text += "\n  what to do: " + t.Hint
	}
	return text
}

// printOrder writes what happened to one order.
func printOrder(w io.Writer, a *acme.Attempt) {
	end := "under way"
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
