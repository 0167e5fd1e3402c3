package acme

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/mholt/acmez/v3"
	protocol "github.com/mholt/acmez/v3/acme"

	"headgate/internal/store"
)

// finalize requests the certificate and waits until it is issued.
func (o *order) finalize(ctx context.Context) (err error) {
	if o.order.Status == protocol.StatusValid {
		return nil
	}
	csr, err := newCSR(o.key, o.names)
	if err != nil {
		return err
	}
	o.step(Processing, "certificate asked for")
	if err := o.save(ctx); err != nil {
		return err
	}
	location := o.order.Location
	if o.order.Status == protocol.StatusProcessing {
		o.order, err = o.poll(ctx)
	} else {
		o.order, err = o.client.FinalizeOrder(ctx, o.account, o.order, csr)
	}
	o.order.Location = location
	return err
}

// poll waits for the end of an order that was finalized before a crash.
func (o *order) poll(ctx context.Context) (protocol.Order, error) {
	for end := time.Now().Add(pollTimeout); time.Now().Before(end); {
		found, err := o.client.GetOrder(ctx, o.account, o.order)
		switch {
		case err != nil:
			return o.order, err
		case found.Status == protocol.StatusValid:
			return found, nil
		case found.Status == protocol.StatusInvalid && found.Error != nil:
			return found, *found.Error
		case found.Status == protocol.StatusInvalid:
			return found, &Trouble{Code: "order_invalid", Message: "the authority has given the order up", Hint: "another one is placed"}
		}
		select {
		case <-ctx.Done():
			return o.order, ctx.Err()
		case <-time.After(2 * time.Second):
		}
	}
	return o.order, context.DeadlineExceeded
}

// collect takes the chain and puts it into use, in one commit with the end of the
// order. What a staging directory has issued is thrown away.
func (o *order) collect(ctx context.Context) (err error) {
	chains, err := o.client.GetCertificateChain(ctx, o.account, o.order.Certificate)
	if err != nil {
		return err
	}
	if len(chains) == 0 {
		return &Trouble{Code: "no_chain", Message: "the authority returned no certificate", Hint: "headgate will try again", theirs: true}
	}
	issued, err := newIssued(o.record.Name, preferred(chains, o.entry.PreferredChain).ChainPEM, o.key)
	if err != nil {
		return err
	}
	has := issued.names()
	if i := slices.IndexFunc(o.names, func(n string) bool { return !Covers(has, n) && !slices.Contains(has, n) }); i >= 0 {
		return &Trouble{Code: "wrong_certificate", Message: "the authority gave a certificate without " + o.names[i], Hint: "it is not used", theirs: true}
	}
	name, _, staging := o.server()
	last := o.record.last()
	before, lastBefore := *o.record, *last
	defer func() {
		if err != nil { // nothing was kept: the order is taken up again
			*last = lastBefore
			*o.record = before
		}
	}()
	last.Ended, last.Issued = o.m.now(), true
	o.record.Open = nil
	if staging {
		last.Steps = append(last.Steps, Step{At: o.m.now(), State: Ready, Text: "it would have been issued; now in earnest"})
		o.record.Rehearse = false
		return o.save(ctx)
	}
	leaf := issued.Certificate.Leaf
	o.record.step(o.m.now(), Valid, "")
	last.Steps = append(last.Steps, Step{At: o.m.now(), State: Valid, Text: fmt.Sprintf("issued, good until %s", leaf.NotAfter.UTC().Format(time.RFC3339))})
	o.record.Has, o.record.Directory, o.record.Profile = o.names, name, o.entry.Profile
	o.record.NotBefore, o.record.NotAfter = leaf.NotBefore, leaf.NotAfter
	o.record.Renewal, o.record.NoReplaces = nil, false
	o.record.Failures, o.record.Server, o.record.ServerFailures, o.record.Trouble, o.record.NextTry = 0, 0, 0, nil, time.Time{}
	if now := o.m.now(); now.After(leaf.NotAfter) || now.Before(leaf.NotBefore) {
		o.record.Warnings = append(o.record.Warnings, fmt.Sprintf("the certificate is valid from %s to %s, but this machine's clock is at %s; check the clock", leaf.NotBefore.UTC().Format(time.RFC3339), leaf.NotAfter.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339)))
	}
	if err := o.save(ctx, store.Entry{Key: store.PrefixCertificate + issued.Name, Value: issued.PEM}); err != nil {
		return err
	}
	o.m.install(issued)
	return nil
}

// preferred returns the chain that ends at a root, or the first.
func preferred(chains []protocol.Certificate, root string) protocol.Certificate {
	if root == "" {
		return chains[0]
	}
	for _, c := range chains {
		if certs := parseChain(c.ChainPEM); len(certs) > 0 && certs[len(certs)-1].Issuer.CommonName == root {
			return c
		}
	}
	return chains[0]
}

func newKey(kind KeyType) (crypto.Signer, error) {
	switch kind {
	case EC384:
		return ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case RSA2048:
		return rsa.GenerateKey(rand.Reader, 2048)
	case RSA4096:
		return rsa.GenerateKey(rand.Reader, 4096)
	}
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

func newCSR(key crypto.Signer, names []string) ([]byte, error) {
	csr, err := acmez.NewCSR(key, names)
	if err != nil {
		return nil, err
	}
	return x509.CreateCertificateRequest(rand.Reader, csr, key)
}

// identifier returns a name as the protocol has it (RFC 8555, section 9.7.7; RFC
// 8738).
func identifier(name string) protocol.Identifier {
	if _, err := netip.ParseAddr(name); err == nil {
		return protocol.Identifier{Type: "ip", Value: name}
	}
	return protocol.Identifier{Type: "dns", Value: name}
}
