// Package shareservers starts real servers on loopback ports for tests: Samba, vsftpd,
// OpenSSH, Apache with WebDAV and with a directory index, nginx.
package shareservers

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/freshet/freshet/internal/testport"
	"github.com/freshet/freshet/share/source"
)

// Server is a real server program on a loopback port that shares one folder. It
// ends with the test.
type Server struct {
	URL     string // of the shared folder
	Options source.Options
	Name    string
}

// Start starts a server that shares root, which its users must be able to read
// (see Reachable).
type Start func(t testing.TB, root string) Server

// needProgram finds a server program. In CI it must be there.
func needProgram(t testing.TB, program string) string {
	t.Helper()
	p, err := exec.LookPath(program)
	if err != nil {
		if _, serr := os.Stat("/usr/sbin/" + program); serr == nil {
			return "/usr/sbin/" + program
		}
		if os.Getenv("CI") == "" {
			t.Skipf("%s is not installed", program)
		}
		t.Fatalf("%s is not installed: %v", program, err)
	}
	if os.Getuid() != 0 {
		if os.Getenv("CI") != "" {
			t.Fatalf("%s needs root", program)
		}
		t.Skipf("%s needs root here", program)
	}
	return p
}

// FreePort returns a loopback port that was free a moment ago.
func FreePort(t testing.TB) string {
	t.Helper()
	n, err := testport.Free()
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(n)
}

// startServer runs a server until the test ends and waits until it listens.
func startServer(t testing.TB, port, program string, args ...string) {
	t.Helper()
	// What it says goes to a file, and it is the first of a process group: children
	// that outlive it would keep a pipe of ours open.
	out, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	said := func() string { b, _ := os.ReadFile(out.Name()); return string(b) }
	c := exec.Command(program, args...)
	c.Stdout, c.Stderr = out, out
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var ended error
	go func() { ended = c.Wait(); close(done) }()
	t.Cleanup(func() {
		_ = c.Process.Signal(os.Interrupt)
		select {
		case <-done:
		case <-time.After(3 * time.Second):
			_ = c.Process.Kill()
			<-done
		}
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // the children that are left
	})
	for late := time.After(2 * time.Minute); ; {
		if conn, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			conn.Close()
			return
		}
		select {
		case <-done:
			t.Fatalf("%s has ended: %v: %s", program, ended, said())
		case <-late:
			t.Fatalf("%s does not listen at port %s: %s", program, port, said())
		case <-time.After(25 * time.Millisecond):
		}
	}
}

// Write writes a file and the folders above it, and returns its path.
func Write(t testing.TB, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Reachable returns a folder that ends with the test; it makes the folder of a test readable by the servers' own users.
func Reachable(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// User and Password open the private share of Samba.
const (
	User     = "nobody"
	Password = "geheim 1"
)

// killAll ends the processes whose command line has a text in it.
func killAll(text string) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range lines {
		b, err := os.ReadFile(name)
		if err != nil || !strings.Contains(string(b), text) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil && pid != os.Getpid() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// Samba shares root as "share", as "hidden$", and as "private" for User.
func Samba(t testing.TB, root string) Server {
	smbd := needProgram(t, "smbd")
	dir, port := Reachable(t), FreePort(t)
	var paths strings.Builder
	for _, d := range []string{"lock", "state", "cache", "private", "pid", "ncalrpc"} {
		p := filepath.Join(dir, d)
		if err := os.MkdirAll(p, 0o755); err != nil {
			t.Fatal(err)
		}
		key := map[string]string{"private": "private dir", "ncalrpc": "ncalrpc dir"}[d]
		if key == "" {
			key = d + " directory"
		}
		fmt.Fprintf(&paths, "%s = %s\n", key, p)
	}
	conf := Write(t, filepath.Join(dir, "smb.conf"), fmt.Sprintf(`[global]
server role = standalone server
map to guest = Bad User
interfaces = lo 127.0.0.1/8
bind interfaces only = yes
disable netbios = yes
smb ports = %s
log file = %s/log
guest account = nobody
load printers = no
%s
[share]
path = %s
guest ok = yes
read only = yes
[hidden$]
path = %s
guest ok = yes
[private]
path = %s
guest ok = no
valid users = %s
`, port, dir, paths.String(), root, root, root, User))
	t.Cleanup(func() { killAll(conf) }) // smbd leaves its RPC helpers behind; runs after start's
	addUser := exec.Command(needProgram(t, "smbpasswd"), "-c", conf, "-L", "-a", "-s", User)
	addUser.Stdin = strings.NewReader(Password + "\n" + Password + "\n")
	if out, err := addUser.CombinedOutput(); err != nil && os.Getuid() == 0 {
		t.Fatalf("smbpasswd: %v: %s", err, out)
	}
	startServer(t, port, smbd, "--foreground", "--no-process-group", "-s", conf)
	return Server{URL: "smb://127.0.0.1:" + port + "/share", Name: "smb"}
}

// VSFTPD serves anonymous users.
func VSFTPD(t testing.TB, root string) Server {
	return startVsftpd(t, root, "")
}

// FTPS serves them over TLS alone, asked for by AUTH TLS, and wants the sessions
// of data connections to be those of the control connection.
func FTPS(t testing.TB, root string) Server {
	cert, roots := loopbackCertificate(t)
	s := startVsftpd(t, root, fmt.Sprintf("ssl_enable=YES\nallow_anon_ssl=YES\nforce_anon_data_ssl=YES\nforce_anon_logins_ssl=YES\nrequire_ssl_reuse=YES\nssl_ciphers=HIGH\nrsa_cert_file=%s\n", cert))
	s.URL, s.Name, s.Options.Roots = "ftpes"+strings.TrimPrefix(s.URL, "ftp"), "ftpes", roots
	return s
}

// ImplicitFTPS begins with TLS at once.
func ImplicitFTPS(t testing.TB, root string) Server {
	cert, roots := loopbackCertificate(t)
	s := startVsftpd(t, root, fmt.Sprintf("ssl_enable=YES\nimplicit_ssl=YES\nallow_anon_ssl=YES\nforce_anon_data_ssl=YES\nforce_anon_logins_ssl=YES\nssl_ciphers=HIGH\nrsa_cert_file=%s\n", cert))
	s.URL, s.Name, s.Options.Roots = "ftps"+strings.TrimPrefix(s.URL, "ftp"), "ftps", roots
	return s
}

// loopbackCertificate makes a key and a certificate of it for the loopback address in
// one file, and the pool that trusts it.
func loopbackCertificate(t testing.TB) (file string, roots *x509.CertPool) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "freshet test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	roots.AddCert(c)
	both := append(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	return Write(t, filepath.Join(Reachable(t), "server.pem"), string(both)), roots
}

func startVsftpd(t testing.TB, root, more string) Server {
	t.Helper()
	bin := needProgram(t, "vsftpd")
	dir, port := Reachable(t), FreePort(t)
	empty := filepath.Join(dir, "empty")
	if err := os.Mkdir(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	conf := Write(t, filepath.Join(dir, "vsftpd.conf"), fmt.Sprintf(`listen=YES
background=NO
listen_address=127.0.0.1
listen_port=%s
anonymous_enable=YES
anon_root=%s
ftp_username=ftp
seccomp_sandbox=NO
max_per_ip=0
secure_chroot_dir=%s
xferlog_enable=NO
no_anon_password=YES
anon_world_readable_only=NO
%s`, port, root, empty, more))
	startServer(t, port, bin, conf)
	return Server{URL: "ftp://127.0.0.1:" + port + "/", Name: "ftp"}
}

// SSHD serves the present user by a key.
func SSHD(t testing.TB, root string) Server {
	bin := needProgram(t, "sshd")
	dir, port := Reachable(t), FreePort(t)
	hostKey := filepath.Join(dir, "host")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", hostKey).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v: %s", err, out)
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	keys := Write(t, filepath.Join(dir, "authorized"), string(ssh.MarshalAuthorizedKey(signer)))
	_ = os.MkdirAll("/run/sshd", 0o755)
	conf := Write(t, filepath.Join(dir, "sshd_config"), fmt.Sprintf(`Port %s
ListenAddress 127.0.0.1
HostKey %s
PidFile %s/pid
AuthorizedKeysFile %s
StrictModes no
UsePAM no
PermitRootLogin prohibit-password
PasswordAuthentication no
Subsystem sftp internal-sftp
`, port, hostKey, dir, keys))
	startServer(t, port, bin, "-D", "-e", "-f", conf)
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	pub, err := os.ReadFile(hostKey + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	return Server{
		URL: "sftp://" + me.Username + "@127.0.0.1:" + port + (&url.URL{Path: root}).EscapedPath(), Name: "sftp",
		Options: source.Options{Key: pem.EncodeToMemory(block), HostKeys: pub},
	}
}

// Apache serves WebDAV, and at /index a directory index.
func Apache(t testing.TB, root string) Server {
	bin := needProgram(t, "apache2")
	dir, port := Reachable(t), FreePort(t)
	conf := Write(t, filepath.Join(dir, "apache.conf"), fmt.Sprintf(`ServerRoot /usr/lib/apache2
ServerName 127.0.0.1
Listen 127.0.0.1:%s
PidFile %s/pid
DefaultRuntimeDir %s
Mutex posixsem
User nobody
Group nogroup
ErrorLog %s/error.log
LoadModule mpm_event_module modules/mod_mpm_event.so
LoadModule authz_core_module modules/mod_authz_core.so
LoadModule dav_module modules/mod_dav.so
LoadModule dav_fs_module modules/mod_dav_fs.so
LoadModule alias_module modules/mod_alias.so
LoadModule autoindex_module modules/mod_autoindex.so
LoadModule mime_module modules/mod_mime.so
TypesConfig /etc/mime.types
DAVLockDB %s/lock
DocumentRoot %s
Alias /index %s
<Directory %s>
Require all granted
Dav On
Options Indexes
</Directory>
<Location /index>
Dav Off
Options Indexes
IndexOptions FancyIndexing NameWidth=* Charset=UTF-8
</Location>
`, port, dir, dir, dir, dir, root, root, root))
	startServer(t, port, bin, "-f", conf, "-DFOREGROUND")
	return Server{URL: "webdav://127.0.0.1:" + port + "/", Name: "webdav"}
}

// ApacheIndex is the directory index of Apache.
func ApacheIndex(t testing.TB, root string) Server {
	s := Apache(t, root)
	return Server{URL: strings.Replace(s.URL, "webdav", "http", 1) + "index", Name: "http (Apache)"}
}

// Nginx serves a directory index in a format, html or json.
func Nginx(t testing.TB, root, format string) Server {
	bin := needProgram(t, "nginx")
	dir, port := Reachable(t), FreePort(t)
	conf := Write(t, filepath.Join(dir, "nginx.conf"), fmt.Sprintf(`daemon off;
pid %[1]s/pid;
error_log %[1]s/error.log;
user nobody nogroup;
events {}
http {
 access_log off;
 client_body_temp_path %[1]s/a; proxy_temp_path %[1]s/b; fastcgi_temp_path %[1]s/c; uwsgi_temp_path %[1]s/d; scgi_temp_path %[1]s/e;
 server { listen 127.0.0.1:%[2]s; charset utf-8; location / { root %[3]s; index none; autoindex on; autoindex_exact_size on; autoindex_format %[4]s; } }
}
`, dir, port, root, format))
	startServer(t, port, bin, "-c", conf, "-p", dir)
	return Server{URL: "http://127.0.0.1:" + port + "/", Name: "http (nginx " + format + ")"}
}

// Folder is no server: the local folder itself.
func Folder(_ testing.TB, root string) Server {
	return Server{URL: (&url.URL{Scheme: "file", Path: root}).String(), Name: "file"}
}

// All returns every server, and the local folder.
func All() []Start {
	return []Start{
		Folder, Samba, VSFTPD, FTPS, ImplicitFTPS, SSHD, Apache, ApacheIndex,
		func(t testing.TB, root string) Server { return Nginx(t, root, "json") },
		func(t testing.TB, root string) Server { return Nginx(t, root, "html") },
	}
}
