package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"headgate/client"
)

func newECH() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ech",
		Short: "Print the DNS records of Encrypted Client Hello",
		Long: `ech prints the HTTPS records with which clients hide the requested host in the TLS handshake,
for each port with tls.ech: as lines of a zone file, with the keys as comments. Add the
records to your DNS, and replace them when a new key is published. Clients with a record
of an older key connect once more to get the published one. With tls.ech.dns, headgate
writes the records itself, and a comment after each record shows its state.` + reachHelp,
		Args:    noArguments,
		Example: "  headgate ech >> example.com.zone",
	}
	r, output := addReach(cmd), addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		to, err := r.open(cmd.Context())
		if err != nil {
			return err
		}
		defer to.close()
		all, err := askList[client.ECHState](cmd.Context(), to, "/ech")
		if err != nil {
			return err
		}
		if output.value == "json" {
			return writeJSON(cmd, all.raw)
		}
		w := screen{cmd.OutOrStdout()}
		if len(all.items) == 0 {
			fmt.Fprintln(w, "; no port has tls.ech: clients show the requested host")
		}
		for i := range all.items {
			printECH(w, &all.items[i])
		}
		return nil
	}
	return cmd
}

// printECH writes the records of a port as a part of a zone file.
func printECH(w io.Writer, s *client.ECHState) {
	fmt.Fprintf(w, "; port %s, public name %s\n", s.Port, s.PublicName)
	for _, k := range s.Keys {
		fmt.Fprintf(w, "; key %d of %s is %s until %s\n", k.ID, k.Made.Format(time.DateOnly), k.Use, k.Until.Format(time.DateOnly))
	}
	for _, issue := range s.Issues {
		fmt.Fprintf(w, "; warning: %s\n", issue)
	}
	for _, record := range s.Records {
		fmt.Fprintln(w, record.Line+recordState(&record))
	}
	if s.More > 0 {
		fmt.Fprintf(w, "; %d more hosts have a record with the same value\n", s.More)
	}
}

// recordState returns the state of a record that headgate writes, as a comment.
func recordState(r *client.ECHRecord) string {
	switch {
	case r.State == "":
		return ""
	case r.Note == "":
		return " ; " + string(r.State)
	}
	return " ; " + string(r.State) + ": " + printable(r.Note)
}

// printECH writes the ports with Encrypted Client Hello.
func (s *statusPage) printECH(w io.Writer) {
	if len(s.ECH) == 0 {
		return
	}
	fmt.Fprint(w, "\nECH PORT\tPUBLIC NAME\tKEYS\tNOTE\n")
	for i := range s.ECH {
		one := &s.ECH[i]
		note := "records: headgate ech"
		if len(one.Issues) > 0 {
			note = strings.Join(one.Issues, "; ")
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\n", printable(one.Port), printable(one.PublicName), len(one.Keys), printable(note))
	}
}
