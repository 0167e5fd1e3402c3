# The formula for Homebrew on macOS and Linux. "make release" fills in the checksums.
class Headgate < Formula
  desc "Reverse proxy with console, certificates and container discovery"
  homepage "@URL@"
  version "@VERSION@"
  license "Apache-2.0"

  on_macos do
    on_arm do
      url "@URL@/releases/download/v@VERSION@/headgate_@VERSION@_darwin_arm64.tar.gz"
      sha256 "@SHA256_DARWIN_ARM64@"
    end
    on_intel do
      url "@URL@/releases/download/v@VERSION@/headgate_@VERSION@_darwin_amd64.tar.gz"
      sha256 "@SHA256_DARWIN_AMD64@"
    end
  end
  on_linux do
    on_arm do
      url "@URL@/releases/download/v@VERSION@/headgate_@VERSION@_linux_arm64.tar.gz"
      sha256 "@SHA256_LINUX_ARM64@"
    end
    on_intel do
      url "@URL@/releases/download/v@VERSION@/headgate_@VERSION@_linux_amd64.tar.gz"
      sha256 "@SHA256_LINUX_AMD64@"
    end
  end

  def install
    bin.install "headgate"
    man1.install Dir["man/*"]
    bash_completion.install "completions/headgate.bash" => "headgate"
    zsh_completion.install "completions/_headgate"
    fish_completion.install "completions/headgate.fish"
    doc.install "headgate.yaml", "THIRD_PARTY_NOTICES"
  end

  service do
    run [opt_bin/"headgate", "run", "--state", var/"lib/headgate"]
    keep_alive true
    log_path var/"log/headgate.log"
    error_log_path var/"log/headgate.log"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/headgate version")
  end
end
