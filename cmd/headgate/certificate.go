package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"headgate/client"
	"headgate/internal/file"
)

func newCertificate() *cobra.Command {
	cmd := group("certificate", "Manage stored certificates", `certificate uploads, creates, lists, exports and removes certificates that headgate stores
in its state directory. To use one, set certificates: {NAME: {stored: NAME}} in the
configuration; a new upload takes effect at once. For ACME certificates, see headgate acme.`+reachHelp)
	cmd.AddCommand(newCertificateList(), newCertificateUpload(), newCertificateSelfSigned(), newCertificateRemove(), newCertificateExport(), newCertificateChosen())
	return cmd
}

func newCertificateList() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List stored certificates", Long: "list shows the stored certificates by name.", Example: "  headgate certificate list -o json", Args: noArguments}
	return withOwnList(cmd, storedPath(""), []string{"NAME", "STATE", "DAYS LEFT", "HOSTS", "USED BY", "ISSUER"}, func(c *client.StoredCertificate) []string {
		return []string{c.Name, c.State, fmt.Sprint(c.DaysLeft), strings.Join(c.Names, " "), orNone(strings.Join(c.UsedBy, " ")), c.Issuer}
	})
}

// storedPath returns the path of a stored certificate, that of the list for "".
func storedPath(name string) string {
	if name == "" {
		return "/stored_certificates"
	}
	return "/stored_certificates/" + url.PathEscape(name)
}

// maxPEM is the largest file that is uploaded.
const maxPEM = 256 << 10

func newCertificateUpload() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "upload NAME CERT [KEY]",
		Short: "Upload a certificate with its key",
		Long: `upload stores the certificate of a PEM file with its private key, which may be in the same
file. Intermediate certificates may be in any order. upload checks that the key matches,
orders the chain, and warns about anything that clients may reject, such as a missing
intermediate certificate. --replace replaces the stored certificate of the same name.` + reachHelp,
		Example: `  headgate certificate upload shop fullchain.pem privkey.pem
  headgate certificate upload shop both.pem --replace`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 || len(args) > 3 {
				return usage("expected NAME CERT [KEY], got %d arguments", len(args))
			}
			return nil
		},
	}
	r, output := addReach(cmd), addOutput(cmd)
	replace := cmd.Flags().Bool("replace", false, "replace the stored certificate of the same name")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		in := map[string]string{"name": args[0]}
		for i, field := range []string{"certificate", "key"} {
			if i+1 < len(args) {
				text, err := file.Read(args[i+1], maxPEM, "too large for a certificate")
				if err != nil {
					return err
				}
				in[field] = string(text)
			}
		}
		return r.with(func(ctx context.Context, to *remote) error {
			var c client.StoredCertificate
			method, path := http.MethodPost, "/certificates/upload"
			if *replace {
				method, path = http.MethodPut, storedPath(args[0])
			}
			if err := to.Do(ctx, method, path, in, &c); err != nil {
				return err
			}
			return reportStored(cmd, output, &c)
		})
	}
	return cmd
}

// reportStored reports a certificate that was stored.
func reportStored(cmd *cobra.Command, output *choice, c *client.StoredCertificate) error {
	if err := done(cmd, output, c, "certificate %s for %s stored, valid until %s", c.Name, strings.Join(c.Names, ", "), c.NotAfter.Local().Format(time.DateOnly)); err != nil || output.value == "json" {
		return err
	}
	for _, note := range c.Notes {
		fmt.Fprintf(screen{cmd.OutOrStdout()}, "! %s\n", note)
	}
	if len(c.UsedBy) == 0 {
		fmt.Fprintf(cmd.OutOrStdout(), "not used by the configuration yet; add certificates: {%s: {stored: %s}}\n", c.Name, c.Name)
	}
	return nil
}

func newCertificateSelfSigned() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "self-signed NAME HOST...",
		Short:   "Create a self-signed certificate",
		Long:    "self-signed creates and stores a self-signed certificate for host names and addresses.",
		Example: "  headgate certificate self-signed lab lab.example.com 192.0.2.1 --days 30",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usage("expected NAME and at least one HOST, got %d arguments", len(args))
			}
			return nil
		},
	}
	r, output := addReach(cmd), addOutput(cmd)
	days := cmd.Flags().Int("days", 365, "validity in days")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return r.with(func(ctx context.Context, to *remote) error {
			var c client.StoredCertificate
			in := map[string]any{"name": args[0], "hosts": args[1:], "days": *days}
			if err := to.Do(ctx, http.MethodPost, "/certificates/self_signed", in, &c); err != nil {
				return err
			}
			return reportStored(cmd, output, &c)
		})
	}
	return cmd
}

func newCertificateRemove() *cobra.Command {
	cmd := &cobra.Command{Use: "remove NAME", Short: "Remove a stored certificate", Long: "remove deletes a stored certificate that the configuration does not use.",
		Example: "  headgate certificate remove old", Args: oneName("certificate")}
	r, output := addReach(cmd), addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return r.with(func(ctx context.Context, to *remote) error {
			if err := to.Do(ctx, http.MethodDelete, storedPath(args[0]), nil, nil); err != nil {
				return err
			}
			return done(cmd, output, map[string]string{"removed": args[0]}, "certificate %s removed", args[0])
		})
	}
	return cmd
}

func newCertificateExport() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "export NAME",
		Short: "Write a certificate with its key",
		Long: `export writes a stored or ACME certificate, its intermediates and its private key as PEM to
standard output or to files. NAME is the name of the certificate or a host that it covers.
export requires the role admin and is recorded in the audit log.` + reachHelp,
		Example: `  headgate certificate export shop.example.com --cert fullchain.pem --key privkey.pem`,
		Args:    oneName("certificate"),
	}
	r, output := addReach(cmd), addOutput(cmd)
	certFile := cmd.Flags().String("cert", "", "`FILE` for the certificates")
	keyFile := cmd.Flags().String("key", "", "`FILE` for the private key, created with mode 0600")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if (*certFile == "") != (*keyFile == "") {
			return usage("--cert and --key must be used together")
		}
		return r.with(func(ctx context.Context, to *remote) error {
			c, err := to.ExportStoredCertificate(ctx, args[0])
			if err != nil {
				return err
			}
			switch {
			case *certFile != "":
				// Replace each file atomically: another process may be reading it.
				if err := file.Replace(*keyFile, []byte(c.Key)); err != nil { // with mode 0600
					return err
				}
				if err := file.Replace(*certFile, []byte(c.Certificate)); err != nil {
					return err
				}
				if err := os.Chmod(*certFile, 0o644); err != nil {
					return err
				}
				return done(cmd, output, map[string]string{"cert": *certFile, "key": *keyFile}, "certificate %s written to %s, key written to %s", c.Name, *certFile, *keyFile)
			case output.value == "json":
				return writeJSON(cmd, c)
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), c.Certificate, c.Key)
			return err
		})
	}
	return cmd
}

func newCertificateChosen() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "chosen HOST",
		Short: "Show which certificate headgate serves for a host",
		Long: `chosen shows which certificate headgate serves for a host on each TLS port, and why. With
--proxy it shows this for all virtual hosts of a proxy.` + reachHelp,
		Example: "  headgate certificate chosen shop.example.com\n  headgate certificate chosen --proxy shop",
		Args:    arguments(0, 1),
	}
	r, output := addReach(cmd), addOutput(cmd)
	proxy := cmd.Flags().String("proxy", "", "`NAME` of a proxy")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if (len(args) == 0) == (*proxy == "") {
			return usage("specify either HOST or --proxy")
		}
		query := "proxy=" + url.QueryEscape(*proxy)
		if len(args) > 0 {
			query = "host=" + url.QueryEscape(args[0])
		}
		return printList(r.withRemote, cmd, output, "/certificates/chosen?"+query, []string{"HOST", "PORT", "CERTIFICATE", "FROM", "STATE", "ENDS", "WHY"}, func(c *client.ChosenCertificate) []string {
			return []string{c.Host, c.Port, orNone(c.Name), c.From, c.State, moment(c.NotAfter), c.Why}
		})
	}
	return cmd
}
