package main

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The files that are made from the others.
const (
	sumsName      = "SHA256SUMS"
	signatureName = "SHA256SUMS.sig"
)

// writeChecksums writes the Homebrew formula, which has checksums of archives in it, the
// installer, and the checksums of all files. With a key it signs them.
func (r *release) writeChecksums() error {
	if err := r.writeFormula(); err != nil {
		return err
	}
	if err := r.writeInstaller(); err != nil {
		return err
	}
	// What "headgate version --check" and admin.update_check read of the latest release.
	if err := os.WriteFile(filepath.Join(r.out, "VERSION"), []byte(r.version+"\n"), 0o644); err != nil {
		return err
	}
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, e := range entries {
		if e.Name() == sumsName || e.Name() == signatureName {
			continue
		}
		sum, err := sumOf(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%s  %s\n", sum, e.Name())
	}
	if err := os.WriteFile(filepath.Join(r.out, sumsName), []byte(sums.String()), 0o644); err != nil {
		return err
	}
	return r.sign()
}

// sumOf returns the SHA-256 of a file in hexadecimal.
func sumOf(name string) (string, error) {
	data, err := os.ReadFile(name)
	return fmt.Sprintf("%x", sha256.Sum256(data)), err
}

// writeFormula fills in packaging/homebrew.rb. A release of a part of the targets has none.
func (r *release) writeFormula() error {
	text, err := os.ReadFile(filepath.Join(r.root, "packaging/homebrew.rb"))
	if err != nil {
		return err
	}
	values := []string{"@VERSION@", r.version, "@URL@", r.homepage}
	for _, t := range allTargets {
		name := r.artifact(t.label() + ".tar.gz")
		mark := "@SHA256_" + strings.ToUpper(t.label()) + "@"
		if !strings.Contains(string(text), mark) {
			continue
		}
		sum, err := sumOf(name)
		if errors.Is(err, os.ErrNotExist) && len(r.targets) < len(allTargets) {
			return nil
		}
		if err != nil {
			return err
		}
		values = append(values, mark, sum)
	}
	return os.WriteFile(filepath.Join(r.out, "headgate.rb"), []byte(strings.NewReplacer(values...).Replace(string(text))), 0o644)
}

// writeInstaller fills in packaging/install.sh: where releases are, and the public key
// that verifies them if the release is signed.
func (r *release) writeInstaller() error {
	text, err := os.ReadFile(filepath.Join(r.root, "packaging/install.sh"))
	if err != nil {
		return err
	}
	public := ""
	if r.key != "" {
		key, err := readKey(r.key)
		if err != nil {
			return err
		}
		der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
		if err != nil {
			return err
		}
		public = strings.TrimSpace(string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})))
	}
	filled := strings.NewReplacer("@VERSION@", r.version, "@URL@", r.homepage, "@PUBLIC_KEY@", public).Replace(string(text))
	return os.WriteFile(filepath.Join(r.out, "install.sh"), []byte(filled), 0o755)
}

// sign signs the checksums. Signatures are random, so they are no part of what two builds
// are compared by.
func (r *release) sign() error {
	if r.key == "" {
		return nil
	}
	key, err := readKey(r.key)
	if err != nil {
		return err
	}
	sums, err := os.ReadFile(filepath.Join(r.out, sumsName))
	if err != nil {
		return err
	}
	digest := sha256.Sum256(sums)
	signature, err := ecdsa.SignASN1(rand.Reader, key, digest[:])
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, signatureName), signature, 0o644)
}

// readKey reads an ECDSA key from a PEM file, as "openssl ecparam -genkey" or "openssl
// genpkey" writes it.
func readKey(name string) (*ecdsa.PrivateKey, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	for {
		block, rest := pem.Decode(data)
		if block == nil {
			return nil, fmt.Errorf("%s has no ECDSA key in PEM", name)
		}
		if key, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
			return key, nil
		}
		if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
			if key, ok := key.(*ecdsa.PrivateKey); ok {
				return key, nil
			}
		}
		data = rest
	}
}
