package password

import (
	"crypto/md5"
	"strings"
)

// magic is the start of the hashes that Apache's htpasswd makes.
const magic = "$apr1$"

// apr1Rounds is fixed by the format.
const apr1Rounds = 1000

// alphabet is the Base64 of crypt(3).
const alphabet = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

func inAlphabet(s string) bool { return s != "" && strings.Trim(s, alphabet) == "" }

// apr1 returns the hash of a password as htpasswd -m writes it: MD5 crypt with
// another magic.
func apr1(password, salt string) string {
	sum := apr1Begin(password, salt)
	for i := range apr1Rounds {
		round := md5.New()
		piece := func(use bool) {
			if use {
				round.Write([]byte(password))
			} else {
				round.Write(sum[:])
			}
		}
		piece(i%2 == 1)
		if i%3 != 0 {
			round.Write([]byte(salt))
		}
		if i%7 != 0 {
			round.Write([]byte(password))
		}
		piece(i%2 == 0)
		round.Sum(sum[:0])
	}
	return magic + salt + "$" + apr1Text(&sum)
}

// apr1Begin returns the initial sum of the rounds.
func apr1Begin(password, salt string) (sum [md5.Size]byte) {
	inner := md5.Sum([]byte(password + salt + password))
	h := md5.New()
	h.Write([]byte(password + magic + salt))
	for n := len(password); n > 0; n -= md5.Size {
		h.Write(inner[:min(n, md5.Size)])
	}
	for n := len(password); n > 0; n >>= 1 {
		if n&1 != 0 {
			h.Write([]byte{0})
		} else {
			h.Write([]byte(password[:1]))
		}
	}
	h.Sum(sum[:0])
	return sum
}

// apr1Text writes a sum as 22 characters, six bits each, in the order of
// crypt(3).
func apr1Text(sum *[md5.Size]byte) string {
	var b strings.Builder
	write := func(v uint, n int) {
		for range n {
			b.WriteByte(alphabet[v&63])
			v >>= 6
		}
	}
	for i := range 5 {
		last := i + 12
		if i == 4 {
			last = 5
		}
		write(uint(sum[i])<<16|uint(sum[i+6])<<8|uint(sum[last]), 4)
	}
	write(uint(sum[11]), 2)
	return b.String()
}
