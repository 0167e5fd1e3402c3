#!/usr/bin/env bash
# repo.sh DIST FOLDER KEY writes an apt and a yum repository of the packages in DIST, signed
# with a GPG key. Serve the folder over https; it has the instructions for users in it.
# It needs apt-ftparchive (apt-utils), createrepo_c (createrepo-c), rpmsign (rpm) and gpg.
set -euo pipefail
[ $# = 3 ] && [ -n "$3" ] || { echo "usage: repo.sh DIST FOLDER KEY (make repo KEY=…)" >&2; exit 2; }
dist=$(realpath "$1") repo=$(realpath -m "$2") key=$3
"$(dirname "$0")/../.ci/install" apt-ftparchive:apt-utils createrepo_c:createrepo-c rpmsign:rpm gpg:gnupg

rm -rf "$repo"
mkdir -p "$repo"/deb/pool "$repo"/rpm
gpg --batch --armor --export "$key" >"$repo/headgate.asc"
[ -s "$repo/headgate.asc" ] || { echo "gpg has no key $key" >&2; exit 1; }

# apt: one suite, stable, with one component.
cp "$dist"/*.deb "$repo/deb/pool/"
cd "$repo/deb"
for arch in amd64 arm64 armhf; do
	mkdir -p "dists/stable/main/binary-$arch"
	apt-ftparchive --arch "$arch" packages pool >"dists/stable/main/binary-$arch/Packages"
	gzip -9nk "dists/stable/main/binary-$arch/Packages"
done
apt-ftparchive -o APT::FTPArchive::Release::Origin=headgate -o APT::FTPArchive::Release::Label=headgate \
	-o APT::FTPArchive::Release::Suite=stable -o APT::FTPArchive::Release::Codename=stable \
	-o APT::FTPArchive::Release::Components=main -o APT::FTPArchive::Release::Architectures="amd64 arm64 armhf" \
	release dists/stable >Release.new
mv Release.new dists/stable/Release
gpg --batch --yes --local-user "$key" --clearsign --output dists/stable/InRelease dists/stable/Release
gpg --batch --yes --local-user "$key" --armor --detach-sign --output dists/stable/Release.gpg dists/stable/Release

# yum and dnf: the packages are signed, and so is the metadata.
cp "$dist"/*.rpm "$repo/rpm/"
cd "$repo/rpm"
rpmsign --define "_gpg_name $key" --define "__gpg $(command -v gpg)" --addsign ./*.rpm >/dev/null
createrepo_c --quiet .
gpg --batch --yes --local-user "$key" --armor --detach-sign --output repodata/repomd.xml.asc repodata/repomd.xml

cat >"$repo/README.txt" <<'TEXT'
With ADDRESS in the place of where this folder is served.

Debian, Ubuntu and others with apt:
  curl -fsSL ADDRESS/headgate.asc | sudo tee /etc/apt/keyrings/headgate.asc >/dev/null
  echo "deb [signed-by=/etc/apt/keyrings/headgate.asc] ADDRESS/deb stable main" | sudo tee /etc/apt/sources.list.d/headgate.list
  sudo apt update && sudo apt install headgate

Fedora, RHEL and others with dnf: /etc/yum.repos.d/headgate.repo
  [headgate]
  name=headgate
  baseurl=ADDRESS/rpm
  gpgcheck=1
  repo_gpgcheck=1
  gpgkey=ADDRESS/headgate.asc
TEXT
echo "$repo is ready"
