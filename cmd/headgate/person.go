package main

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"headgate/client"
)

func newPerson() *cobra.Command {
	cmd := group("person", "Manage the people who sign in at applications", `person lists, adds, invites, resets and removes the people that headgate stores (sign_in.local), and
shows and ends sessions at applications, including those of people from providers. People set up their
passkey or password through an invitation link. For the operators of headgate, see "headgate user".`+reachHelp)
	cmd.Example = `  headgate person add ann --email ann@example.com --group family
  headgate person invite ann
  headgate person sessions`
	cmd.AddCommand(newPersonList(), newPersonAdd(), newPersonInvite(), newPersonReset(), newPersonRemove(), newPersonSessions(), newPersonEnd())
	return cmd
}

func personPath(name string) string { return "/people/" + url.PathEscape(name) }

func newPersonList() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the people that headgate stores", Long: "list shows the people that headgate stores, by name." + reachHelp,
		Example: "  headgate person list -o json", Args: noArguments}
	return withList(cmd, "/people", []string{"NAME", "FULL NAME", "E-MAIL", "GROUPS", "STATE", "PASSKEYS", "SESSIONS", "SIGNED IN"}, func(p *client.Person) []string {
		return []string{p.Name, orNone(p.FullName), orNone(p.Email), orNone(strings.Join(p.Groups, ",")), personState(p), strconv.Itoa(len(p.Passkeys)), strconv.Itoa(p.Sessions), moment(p.SignedIn)}
	})
}

// personState returns the state of a person in a word.
func personState(p *client.Person) string {
	switch {
	case p.Disabled:
		return "disabled"
	case !p.Invited.IsZero():
		return "invited"
	case !p.Password && len(p.Passkeys) == 0:
		return "no credentials"
	}
	return "enabled"
}

func newPersonAdd() *cobra.Command {
	cmd := &cobra.Command{
		Use: "add NAME", Short: "Add a person and print the invitation link",
		Long: `add adds a person and prints a link with which the person sets up a passkey, or a password and an
authenticator. The link works once.` + reachHelp,
		Example: "  headgate person add ann --full-name 'Ann Example' --email ann@example.com --group family",
		Args:    oneName("person"),
	}
	r, output := addReach(cmd), addOutput(cmd)
	fullName := cmd.Flags().String("full-name", "", "`NAME` for people to read")
	email := cmd.Flags().String("email", "", "e-mail `ADDRESS`")
	groups := cmd.Flags().StringArray("group", nil, "`GROUP` of the person; may be repeated")
	span := addInvitationAge(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		age, err := invitationAge(*span)
		if err != nil {
			return err
		}
		return r.withRemote(func(ctx context.Context, to *remote) error {
			if _, err := to.CreatePerson(ctx, &client.Person{Name: args[0], FullName: *fullName, Email: *email, Groups: *groups}); err != nil {
				return err
			}
			return invite(ctx, cmd, to, output, args[0], "invitation", age, "person %s added; the invitation link works until %s:\n%s")
		})
	}
	return cmd
}

func addInvitationAge(cmd *cobra.Command) *string {
	return cmd.Flags().String("for", "72h", "`DURATION` for which the link can be used, like 24h or 7d")
}

func invitationAge(text string) (time.Duration, error) {
	d, err := longDuration(text)
	if err != nil || d <= 0 {
		return 0, usage("invalid duration %q: expected a duration like 24h or 7d", text)
	}
	return d, nil
}

// invite makes a link for a person and prints it.
func invite(ctx context.Context, cmd *cobra.Command, to *remote, output *choice, name, how string, age time.Duration, format string) error {
	var link client.Invite
	if err := to.Do(ctx, http.MethodPost, personPath(name)+"/"+how, map[string]string{"for": age.String()}, &link); err != nil {
		return err
	}
	return done(cmd, output, link, format, name, link.Expires.Local().Format(time.DateTime), cmp.Or(link.Link, link.Path+" at the sign-in page, which is not configured yet"))
}

func newPersonInvite() *cobra.Command {
	cmd := &cobra.Command{
		Use: "invite NAME", Short: "Print an invitation link for a person",
		Long: `invite prints a link with which a person sets up a passkey, or a password and an authenticator. The
link works once, and an earlier link of the person stops working.` + reachHelp,
		Example: "  headgate person invite ann --for 24h",
		Args:    oneName("person"),
	}
	return withInvitation(cmd, "invitation", "the invitation link of %s works until %s:\n%s")
}

func newPersonReset() *cobra.Command {
	cmd := &cobra.Command{
		Use: "reset NAME", Short: "Reset a person who has lost a phone or a password",
		Long: `reset removes the password, the authenticator and the passkeys of a person, ends all sessions of the
person, and prints an invitation link to set up new ones.` + reachHelp,
		Example: "  headgate person reset ann",
		Args:    oneName("person"),
	}
	return withInvitation(cmd, "reset", "the credentials of %s are removed; the link for new ones works until %s:\n%s")
}

func withInvitation(cmd *cobra.Command, how, format string) *cobra.Command {
	r, output := addReach(cmd), addOutput(cmd)
	span := addInvitationAge(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		age, err := invitationAge(*span)
		if err != nil {
			return err
		}
		return r.withRemote(func(ctx context.Context, to *remote) error {
			return invite(ctx, cmd, to, output, args[0], how, age, format)
		})
	}
	return cmd
}

func newPersonRemove() *cobra.Command {
	cmd := &cobra.Command{Use: "remove NAME", Short: "Remove a person", Long: "remove removes a person and ends all sessions of the person." + reachHelp,
		Example: "  headgate person remove bob", Args: oneName("person")}
	return withDelete(cmd, "/people/", "removed", "person %s removed")
}

func newPersonSessions() *cobra.Command {
	cmd := &cobra.Command{Use: "sessions", Short: "List the sessions of people at applications", Long: "sessions shows who is signed in at applications, newest first, including people from providers." + reachHelp,
		Example: "  headgate person sessions", Args: noArguments}
	return withList(cmd, "/gate/sessions", []string{"SESSION", "PERSON", "NAME", "ADDRESS", "SIGNED IN", "SEEN", "APPLICATIONS"}, func(s *client.PersonSession) []string {
		return []string{s.ID, s.Person, orNone(s.Title), orNone(s.Address), moment(s.Created), ago(s.Seen), orNone(strings.Join(s.Hosts, ","))}
	})
}

func newPersonEnd() *cobra.Command {
	cmd := &cobra.Command{Use: "end SESSION", Short: "End a session of a person", Long: `end ends a session at all its applications. Open WebSockets and other long exchanges are closed.
"headgate person sessions" lists the sessions.` + reachHelp,
		Example: "  headgate person end 3f9a0c52d1e87b46", Args: oneName("session")}
	return withDelete(cmd, "/gate/sessions/", "ended", "session %s ended")
}

func newGateOpen() *cobra.Command {
	cmd := &cobra.Command{
		Use: "open HOST", Short: "Open the gate of a host to everyone temporarily",
		Long: `open gives everyone access to the applications of a host without signing in, for at most 24h. Servers
get no identity headers for clients without a session. It is recorded in the audit log.` + reachHelp,
		Example: "  headgate gate open wiki.example.com --for 10m --why 'the provider is down'",
		Args:    oneName("host"),
	}
	r, output := addReach(cmd), addOutput(cmd)
	span := cmd.Flags().String("for", "", "`DURATION`, like 10m; at most 24h")
	why := cmd.Flags().String("why", "", "`TEXT` recorded in the audit log")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		d, err := longDuration(*span)
		if err != nil || d <= 0 {
			return usage("specify --for with a duration like 10m")
		}
		return r.withRemote(func(ctx context.Context, to *remote) error {
			o, err := to.CreateGateOpening(ctx, &client.OpeningInput{Host: args[0], For: d.String(), Why: *why})
			if err != nil {
				return err
			}
			return done(cmd, output, o, "the gate of %s is open to everyone until %s", o.Host, o.Until.Local().Format(time.DateTime))
		})
	}
	return cmd
}

func newGateClose() *cobra.Command {
	cmd := &cobra.Command{Use: "close HOST", Short: "Close the gate of a host", Long: "close closes a gate again that was opened with headgate gate open." + reachHelp,
		Example: "  headgate gate close wiki.example.com", Args: oneName("host")}
	return withDelete(cmd, "/gate/openings/", "closed", "the gate of %s is closed")
}

func newGateList() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the gates that are open", Long: "list shows the hosts whose gate is open to everyone, until when, and who opened it." + reachHelp,
		Example: "  headgate gate list", Args: noArguments}
	return withList(cmd, "/gate/openings", []string{"HOST", "UNTIL", "WHO", "WHY"}, func(o *client.Opening) []string {
		return []string{o.Host, moment(o.Until), o.Who, orNone(o.Why)}
	})
}
