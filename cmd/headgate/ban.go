package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"headgate/client"
	"headgate/internal/bans"
)

func newBan() *cobra.Command {
	cmd := group("ban", "List, add and lift bans", `ban shows which clients are banned and why, bans an address, and lifts bans. Rules under bans in
the configuration ban clients automatically: see "headgate ban rules".`+reachHelp)
	cmd.Example = `  headgate ban list
  headgate ban add 203.0.113.9 --for 24h --why 'scans for phpMyAdmin'
  headgate ban lift 203.0.113.9`
	cmd.AddCommand(newBanList(), newBanAdd(), newBanLift(), newBanRules())
	return cmd
}

func newBanList() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List active bans", Args: noArguments,
		Long: `list shows the active bans, the latest first: the address, the rule, the reason, the end, and
the number of rejected requests.` + reachHelp,
	}
	return withList(cmd, "/banned", []string{"CLIENT", "RULE", "SINCE", "UNTIL", "ANSWER", "REFUSED", "WHO", "WHY"}, func(b *client.BannedAddress) []string {
		return []string{b.Network, orNone(b.Rule), ago(b.Since), b.Until.Local().Format(time.DateTime), b.Answer, strconv.Itoa(b.Refused), orNone(b.Who), orNone(b.Why)}
	})
}

func newBanAdd() *cobra.Command {
	cmd := &cobra.Command{
		Use: "add ADDRESS", Short: "Ban an address or a network",
		Long: `add bans an address or a network at all proxies. An IPv6 address is banned with its /64. This
machine, proxies in front and addresses that operators signed in from are never banned.

A banned client gets 403 with the reason banned. With --answer reject its new connections are
closed, before TLS; clients that signed in within 24 hours still get the 403.` + reachHelp,
		Example: `  headgate ban add 203.0.113.9
  headgate ban add 203.0.113.0/24 --for 7d --why 'scans for phpMyAdmin'
  headgate ban add 203.0.113.9 --answer reject`,
		Args: oneAddress,
	}
	r, output := addReach(cmd), addOutput(cmd)
	span := cmd.Flags().String("for", "24h", "`DURATION` of the ban, like 10m, 24h or 7d")
	why := cmd.Flags().String("why", "", "`TEXT` recorded in the log, events and the audit log")
	answer := newChoice(string(bans.Deny), string(bans.Reject))
	cmd.Flags().Var(answer, "answer", "what the client gets: deny answers with 403, reject closes new connections before TLS")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		d, err := longDuration(*span)
		if err != nil || d <= 0 {
			return usage("invalid duration %q: expected a duration like 10m or 24h", *span)
		}
		return r.withRemote(func(ctx context.Context, to *remote) error {
			b, err := to.BanAddress(ctx, &client.BanInput{Address: args[0], For: d.String(), Why: *why, Answer: answer.value})
			if err != nil {
				return err
			}
			return done(cmd, output, b, "%s is banned until %s", b.Network, b.Until.Local().Format(time.DateTime))
		})
	}
	return cmd
}

func newBanLift() *cobra.Command {
	cmd := &cobra.Command{
		Use: "lift ADDRESS", Short: "Lift the bans of an address or a network",
		Long: `lift removes all bans of an address, or of a network and the addresses in it. With --never, rules
do not ban the address again; --again reverses that.` + reachHelp,
		Example: `  headgate ban lift 203.0.113.9
  headgate ban lift 203.0.113.9 --never --why 'our monitoring'`,
		Args: oneAddress,
	}
	r, output := addReach(cmd), addOutput(cmd)
	never := cmd.Flags().Bool("never", false, "keep rules from banning the address again")
	again := cmd.Flags().Bool("again", false, "allow rules to ban the address again, after --never")
	why := cmd.Flags().String("why", "", "`TEXT` recorded in the audit log")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *never && *again {
			return usage("--never and --again exclude each other")
		}
		return r.withRemote(func(ctx context.Context, to *remote) error {
			out, err := to.LiftBan(ctx, &client.LiftInput{Address: args[0], Never: *never, Again: *again, Why: *why})
			if err != nil {
				return err
			}
			text := fmt.Sprintf("bans lifted: %d", len(out.Lifted))
			if out.Never {
				text += "; no rule bans " + args[0] + " again"
			}
			return done(cmd, output, out, "%s", text)
		})
	}
	return cmd
}

func newBanRules() *cobra.Command {
	cmd := &cobra.Command{
		Use: "rules", Short: "Show which clients the ban rules have banned", Args: noArguments,
		Long: `rules shows what each ban rule has done since it was configured. For a rule in observe mode it
lists the clients that it would have banned, and how many of those have signed in.` + reachHelp,
	}
	r, output := addReach(cmd), addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return r.withRemote(func(ctx context.Context, to *remote) error {
			out, err := to.GetBanRules(ctx)
			if err != nil {
				return err
			}
			if output.value == "json" {
				return writeJSON(cmd, out)
			}
			w := screen{cmd.OutOrStdout()}
			for _, rule := range out.Rules {
				fmt.Fprintf(w, "%s (%s): %s\n", rule.Name, rule.Mode, rule.Summary)
				for _, one := range rule.Would {
					signedIn := ""
					if one.SignedIn {
						signedIn = " (signed in)"
					}
					fmt.Fprintf(w, "  %s%s: %s, until %s\n", one.Network, signedIn, one.Why, one.Until.Local().Format(time.DateTime))
				}
			}
			for _, p := range out.Never {
				fmt.Fprintf(w, "never banned: %s\n", bans.Display(p.Network))
			}
			for _, i := range out.Issues {
				fmt.Fprintf(w, "! %s; %s\n", i.Message, i.Hint)
			}
			return nil
		})
	}
	return cmd
}

// oneAddress requires one address or network.
func oneAddress(_ *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return usage("expected one address or network, got %d arguments", len(args))
	}
	return nil
}
