package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"headgate/client"
)

func newSplit() *cobra.Command {
	cmd := group("split", "Promote, hold and return candidate servers", `split changes the share of clients that the candidate servers of a route get, without
changing the configuration. The share survives restarts and configuration changes that
keep the shares of the split. Status, metrics and events show it.`+reachHelp)
	cmd.AddCommand(
		newSplitList(),
		newSplitVerb("promote", "Give the candidate its next share", `promote gives the candidate the next share of the schedule, or all requests after the last
step. A candidate that was returned starts again with its first share.`),
		newSplitVerb("hold", "Stop the schedule at the current share", `hold stops the schedule at the current share. The candidate is still returned if it is
worse than the stable servers.`),
		newSplitVerb("return", "Send no more requests to the candidate", `return sends no more requests to the candidate, not even those of its clients. Requests in
progress complete.`),
		newSplitVerb("restart", "Start again with the first share", `restart starts the split again with the first share of its settings.`),
	)
	return cmd
}

func newSplitVerb(verb, short, long string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   verb + " PROXY",
		Short: short,
		Long:  long + reachHelp,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("expected PROXY, got %d arguments", len(args))
			}
			return nil
		},
		Example: "  headgate split " + verb + " shop --why 'release 2.4'",
	}
	r, output := addReach(cmd), addOutput(cmd)
	route := cmd.Flags().String("route", "", "`ROUTE` with its matchers, if several routes of the proxy have a split")
	why := cmd.Flags().String("why", "", "`TEXT` recorded in events and the audit log")
	to := new(int)
	if verb == "promote" {
		cmd.Example += "\n  headgate split promote shop --to 40"
		to = cmd.Flags().Int("to", 0, "`PERCENT` of clients, instead of the next step")
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *to < 0 || *to > 100 || *to == 0 && cmd.Flags().Changed("to") {
			return usage("invalid share %d: expected a percentage from 1 to 100", *to)
		}
		at, err := r.open(cmd.Context())
		if err != nil {
			return err
		}
		defer at.close()
		var s client.SplitState
		in := client.SplitInput{Proxy: args[0], Route: *route, To: *to, Why: *why}
		if err := at.Do(cmd.Context(), http.MethodPost, "/splits/"+verb, in, &s); err != nil {
			return err
		}
		if output.value == "json" {
			return writeJSON(cmd, s)
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), printable(fmt.Sprintf("split of proxy %s, route %s is %s; the candidate gets %d%%", s.Proxy, s.Route, s.Phase, s.Share)))
		return err
	}
	return cmd
}

func newSplitList() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List splits with their shares and statistics",
		Long: `list shows the routes with a split: the candidate's share, what the next step waits for, and
what this machine has counted of both groups in the window: requests, errors and the 95th
percentile of the time to the response head.` + reachHelp,
		Args: noArguments,
	}
	columns := []string{"PROXY", "ROUTE", "STATE", "CANDIDATE", "NEXT", "STABLE", "CANDIDATE REQUESTS", "SINCE", "WHO", "WHY"}
	return withList(cmd, "/splits", columns, func(s *client.SplitState) []string {
		next := "-"
		if s.Next > 0 {
			next = strings.TrimSuffix(fmt.Sprintf("%d%%, waits for %s", s.Next, s.Waits), ", waits for ")
		}
		return []string{s.Proxy, s.Route, string(s.Phase), fmt.Sprintf("%d%%", s.Share), next, countsText(s.Stable), countsText(s.Candidate), ago(s.Since), orNone(s.Who), orNone(s.Why)}
	})
}

// printSplits writes the splits of routes.
func (s *statusPage) printSplits(w io.Writer) {
	if len(s.Splits) == 0 {
		return
	}
	fmt.Fprint(w, "\nSPLIT\tROUTE\tSTATE\tCANDIDATE\tSINCE\tNOTE\n")
	for i := range s.Splits {
		one := &s.Splits[i]
		note := one.Why
		if one.Who != "" {
			note = strings.TrimSuffix("by "+one.Who+": "+one.Why, ": ")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d%%\t%s\t%s\n", printable(one.Proxy), printable(one.Route), one.Phase, one.Share, ago(one.Since), printable(note))
	}
}

// countsText is what was counted of a group.
func countsText(s client.SplitStats) string {
	return fmt.Sprintf("%d, %d failed, p95 %gms", s.Requests, s.Errors, s.P95MS)
}
