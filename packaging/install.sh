#!/bin/sh
# Installs headgate @VERSION@: the package of this Linux distribution as root, else the
# binary into ~/.local/bin. Every download is verified before anything is installed.
#
#   sh install.sh                     install
#   sh install.sh --dry-run           verify, and show what would be installed
#   sh install.sh --version 1.2.3     another version
#   sh install.sh --prefix /opt/hg    the binary into /opt/hg/bin, on any system
#
# HEADGATE_RELEASES is where the files of a release are, with the version as the last
# part of the path, for mirrors and machines without access to the internet.
set -eu

version=@VERSION@
releases=${HEADGATE_RELEASES:-}
prefix=
dry=

# The key that releases are signed with. Without it only the checksums are compared, which
# detects damage, but not somebody who can change the files on the server.
public_key='@PUBLIC_KEY@'

say() { printf '%s\n' "$*"; }
die() { printf 'install.sh: %s\n' "$*" >&2; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }

# Everything is in functions that the last line calls: a download that was cut off in the
# middle does nothing.
main() {
	while [ $# -gt 0 ]; do
		case $1 in
		--dry-run) dry=yes ;;
		--version) [ $# -gt 1 ] || die "--version needs a version"; version=$2; shift ;;
		--prefix) [ $# -gt 1 ] || die "--prefix needs a folder"; prefix=$2; shift ;;
		-h | --help) sed -n '2,/^$/s/^# \{0,1\}//p' "$0"; exit 0 ;;
		*) die "unknown argument $1; see --help" ;;
		esac
		shift
	done
	case $version in
	'' | *[!0-9A-Za-z.-]* | .* | -*) die "\"$version\" is not a version" ;;
	esac
	: "${releases:=@URL@/releases/download/v$version}"
	case $releases in
	https://* | file:///* | http://127.0.0.1:* | http://localhost:*) ;;
	*) die "HEADGATE_RELEASES must be an https:// address" ;;
	esac

	detect
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	trap 'exit 1' HUP INT TERM
	say "headgate $version for $os $arch: $file"
	fetch SHA256SUMS
	verify_signature
	fetch "$file"
	verify_checksum "$file"
	if [ -n "$dry" ]; then
		say "Dry run: $file is verified and would be installed $(where). Nothing was changed."
		return
	fi
	install_file
}

# detect sets os, arch, kind (deb, rpm, apk, arch or tar) and file.
detect() {
	case $(uname -s) in
	Linux) os=linux ;;
	Darwin) os=darwin ;;
	FreeBSD) os=freebsd ;;
	*) die "there is no headgate for $(uname -s); see the list of files of the release" ;;
	esac
	case $(uname -m) in
	x86_64 | amd64) arch=amd64 rpm=x86_64 apk=x86_64 deb=amd64 ;;
	aarch64 | arm64) arch=arm64 rpm=aarch64 apk=aarch64 deb=arm64 ;;
	armv7* | armv8l) arch=armv7 rpm=armv7hl apk=armv7 deb=armhf ;;
	*) die "there is no headgate for the processor $(uname -m)" ;;
	esac
	kind=tar
	if [ "$os" = linux ] && [ -z "$prefix" ] && [ "$(id -u)" = 0 ]; then
		if has dpkg; then kind=deb
		elif has rpm; then kind=rpm
		elif has apk; then kind=apk
		elif has pacman; then kind=arch
		fi
	fi
	# A prerelease, 1.2.3-rc.1, sorts before 1.2.3 where the format has a sign for that.
	case $kind in
	deb) file=headgate_$(tilde)-1_$deb.deb ;;
	rpm) file=headgate-$(tilde)-1.$rpm.rpm ;;
	apk) file=headgate_$(printf %s "$version" | sed 's/-/_/;s/_rc\./_rc/')-r1_$apk.apk ;;
	arch) file=headgate-$(printf %s "$version" | sed 's/-//')-1-$rpm.pkg.tar.zst ;;
	tar) file=headgate_${version}_${os}_$arch.tar.gz ;;
	esac
}

tilde() { printf %s "$version" | sed 's/-/~/'; }

# fetch downloads a file of the release. An address that leads from https to anything
# else is refused.
fetch() {
	case $releases in
	file:///*) cp "${releases#file://}/$1" "$work/$1" 2>/dev/null || die "$releases/$1 does not exist" ; return ;;
	esac
	if has curl; then
		case $releases in https://*) only='=https' ;; *) only='=http,https' ;; esac
		curl -fsSL --proto "$only" --proto-redir "$only" --connect-timeout 20 --retry 2 -o "$work/$1" "$releases/$1" ||
			die "cannot download $releases/$1"
	elif has wget; then
		wget -q -T 20 -O "$work/$1" "$releases/$1" ||
			die "cannot download $releases/$1"
	else
		die "install curl or wget first"
	fi
}

# verify_signature verifies the checksums with the key above. A release whose installer
# has a key must be signed.
verify_signature() {
	if [ -z "$public_key" ]; then
		say "Integrity only: this installer has no public key, so only checksums are compared."
		return
	fi
	if ! has openssl; then
		say "Integrity only: openssl is not installed, so the signature is not verified."
		return
	fi
	fetch SHA256SUMS.sig
	printf '%s\n' "$public_key" >"$work/key.pem"
	openssl dgst -sha256 -verify "$work/key.pem" -signature "$work/SHA256SUMS.sig" "$work/SHA256SUMS" >/dev/null 2>&1 ||
		die "the signature of SHA256SUMS is wrong; nothing was installed"
	say "Signature of the release: verified."
}

verify_checksum() {
	want=$(awk -v name="$1" '$2 == name { print $1; n++ } END { if (n != 1) exit 1 }' "$work/SHA256SUMS") ||
		die "SHA256SUMS does not list $1; nothing was installed"
	if has sha256sum; then have=$(sha256sum "$work/$1")
	elif has shasum; then have=$(shasum -a 256 "$work/$1")
	elif has sha256; then have=$(sha256 -q "$work/$1")
	else have=$(openssl dgst -sha256 -r "$work/$1")
	fi
	[ "${have%% *}" = "$want" ] || die "the checksum of $1 is wrong; nothing was installed"
	say "Checksum of $1: verified."
}

where() {
	case $kind in
	tar) say "as ${prefix:-$HOME/.local}/bin/headgate" ;;
	*) say "as a package" ;;
	esac
}

install_file() {
	case $kind in
	deb) dpkg -i "$work/$file" ;;
	rpm) rpm -U --replacepkgs "$work/$file" ;;
	# The file is verified above, and its own signature is of no known key.
	apk) apk add --allow-untrusted "$work/$file" ;;
	arch) pacman -U --noconfirm "$work/$file" ;;
	tar)
		prefix=${prefix:-$HOME/.local}
		tar -xzf "$work/$file" -C "$work"
		mkdir -p "$prefix/bin" "$prefix/share/man/man1"
		# A new file and a rename: a headgate that runs keeps its own.
		cp "$work/headgate_${version}_${os}_$arch/headgate" "$prefix/bin/.headgate.new"
		chmod 755 "$prefix/bin/.headgate.new"
		"$prefix/bin/.headgate.new" version >/dev/null || { rm -f "$prefix/bin/.headgate.new"; die "the binary does not run here"; }
		mv "$prefix/bin/.headgate.new" "$prefix/bin/headgate"
		cp "$work/headgate_${version}_${os}_$arch"/man/*.gz "$prefix/share/man/man1/"
		say "Installed $prefix/bin/headgate. Try it: $prefix/bin/headgate demo"
		;;
	esac
}

main "$@"
