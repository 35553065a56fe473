// Package config is the file format of freshet serve: one YAML file, every key
// with its documentation and default in the struct below. A key that does not
// exist is an error with its line and the nearest key that does. Environment
// variables (FRESHET_CRAWL_AGENTS=8) override the file, and --set
// crawl.agents=8 overrides both.
package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/freshet/freshet/store"
	"github.com/freshet/freshet/throttle"
)

// Config is the whole file. The doc tags are printed by freshet config print.
type Config struct {
	Data     string        `yaml:"data" doc:"Data directory. Empty: --data, $FRESHET_DATA or the user's data directory."`
	Database string        `yaml:"database" doc:"postgres://user:password@host/name: the work is shared with all processes on that database (docs/scale-out.md). Empty: everything in the data directory."`
	Lease    time.Duration `yaml:"lease" doc:"With a database: after so long without a sign of life, others take over the hosts of this process."`
	MinFree  Bytes         `yaml:"min_free" doc:"Disk space that is kept free: with less, nothing is fetched or indexed."`
	Node     string        `yaml:"node" doc:"Name of this process among those that share a database. Empty: host name and the identity of the data directory."`
	Console  Console       `yaml:"console" doc:"Search page, operator pages, API."`
	Agent    Agent         `yaml:"agent" doc:"Who the robot says it is."`
	Sources  []Source      `yaml:"sources" doc:"What is kept fresh: web sites and file shares."`
	Crawl    Crawl         `yaml:"crawl" doc:"The web robot."`
	Render   Render        `yaml:"render" doc:"Building pages in a browser where that gains something (docs/rendering.md)."`
	PDF      PDF           `yaml:"pdf" doc:"Reading PDF documents, of sites and shares."`
	Share    Share         `yaml:"share" doc:"The share robot."`
	Index    Index         `yaml:"index" doc:"The text index and its ranking."`
	Throttle Throttle      `yaml:"throttle" doc:"How many agents fetch while the indexer is behind (see docs/robot-control.md)."`
	Signals  Signals       `yaml:"signals" doc:"Who may tell that pages changed."`
	Lab      Lab           `yaml:"lab" doc:"Computations of the lab that the console shows."`
	Archive  Archive       `yaml:"archive" doc:"Bodies of fetched pages, as WARC files."`
	Retain   Retention     `yaml:"retain" doc:"How long logs for calibration are kept."`
}

// Console configures the web pages and the API.
type Console struct {
	Listen    string   `yaml:"listen" doc:"Address and port. Anything but a loopback address needs password or trusted_header."`
	Password  string   `yaml:"password" doc:"Operator's password, as printed by freshet config hash. Searching needs none unless private is true. Without any login the owner of the data directory is the operator (freshet open)."`
	Tokens    []string `yaml:"tokens" doc:"Bearer tokens of operators' programs that use the API, at least 16 characters each: openssl rand -hex 32 makes one."`
	Header    string   `yaml:"trusted_header" doc:"Header in which an authenticating proxy names the user (OIDC), e.g. X-Forwarded-User. A user may search; operators names those who may do more."`
	Operators []string `yaml:"operators" doc:"Users named by trusted_header who are operators; \"*\" is all of them. Others may search."`
	Proxies   []string `yaml:"trusted_proxies" doc:"Addresses or networks of reverse proxies, whose trusted_header and X-Forwarded-For (or Forwarded) are believed."`
	Hosts     []string `yaml:"hosts" doc:"Further host names under which the console answers. It always answers to localhost, the name in listen, and the hosts of public_url and signals.callback; unless it listens on loopback alone, to the machine's name and to addresses. \"*\" is every name, which lets any web page that a reader visits use the console."`
	PublicURL string   `yaml:"public_url" doc:"Address under which browsers reach the console, such as https://search.example.org. With https, cookies are sent by TLS alone."`
	TLSCert   string   `yaml:"tls_cert" doc:"File with the certificate chain (PEM) by which the console speaks TLS; read again when it changes."`
	TLSKey    string   `yaml:"tls_key" doc:"File with its private key (PEM)."`
	ACME      ACME     `yaml:"acme" doc:"Certificates that are got and renewed by themselves (Let's Encrypt), instead of tls_cert."`
	Private   bool     `yaml:"private" doc:"Searching needs a login, too. It does, whatever stands here, if a share has a login and is not open."`
	Rate      float64  `yaml:"rate" doc:"Searches a second that one client (an IPv4 address, an IPv6 /64) may ask, on average; 0 is no limit."`
	Title     string   `yaml:"title" doc:"Name on the search page."`
	Media     bool     `yaml:"media" doc:"Play audio and video of shares in the browser, for all who may search."`
}

// ACME configures certificates by the ACME protocol (RFC 8555).
type ACME struct {
	Hosts     []string `yaml:"hosts" doc:"Names that certificates are got for; empty is no ACME. The certificate authority connects to port 443 of them (TLS-ALPN-01), or to port 80 where http is set."`
	Email     string   `yaml:"email" doc:"Where the authority reaches you; optional."`
	Directory string   `yaml:"directory" doc:"The authority's directory. Empty: Let's Encrypt, whose terms you accept thereby."`
	HTTP      string   `yaml:"http" doc:"Address, such as :80, on which challenges by HTTP-01 are answered and other requests are sent to https."`
}

// Agent identifies the robot to servers.
type Agent struct {
	Name    string `yaml:"name" doc:"Product token in User-Agent, matched in robots.txt."`
	Contact string `yaml:"contact" doc:"URL or mail address where a server's operator reaches you. Needed before public hosts are crawled."`
}

// Source is one web site or file share, or several.
type Source struct {
	URL          string         `yaml:"url" doc:"http(s)://... is a web site; smb:// ftp:// ftpes:// sftp:// webdav(s):// file:// index+http(s):// a share."`
	Scope        string         `yaml:"scope" doc:"How far links are followed: host, domain, prefix or any."`
	Depth        int            `yaml:"depth" doc:"Greatest number of links from the start; 0 is no limit."`
	Include      []string       `yaml:"include" doc:"Regular expressions, one of which a URL must match."`
	Exclude      []string       `yaml:"exclude" doc:"Regular expressions of URLs that are left out."`
	Delay        *time.Duration `yaml:"delay" doc:"Least time between two requests to a host of this source, in place of crawl.delay. 0s is no pause at all: for servers of your own. A Crawl-delay in robots.txt holds all the same."`
	Connections  int            `yaml:"connections" doc:"Requests at once to a host of this source whose delay is 0; 0 is crawl.connections."`
	AllowPrivate bool           `yaml:"allow_private" doc:"Loopback and private addresses of the hosts that this source covers may be contacted; other hosts of the internet only."`
	Policy       string         `yaml:"policy" doc:"When the pages of the hosts that this source names are visited again: half-change or adaptive, in place of crawl.policy. Policies that divide the budget hold for all sources together."`
	BudgetBytes  Bytes          `yaml:"budget_bytes" doc:"Bytes of bodies that are kept of a host of this source in a day, in place of crawl.host_bytes_day: then it rests for the rest of it."`
	MaxPages     int64          `yaml:"max_pages" doc:"Pages of a host of this source, in place of crawl.traps.host_pages."`
	MaxBody      Bytes          `yaml:"max_body" doc:"Longest body of a page of a host of this source, in place of crawl.max_body."`
	UserAgent    string         `yaml:"user_agent" doc:"User-Agent sent to the origin (scheme, host, port) of this source. In robots.txt the robot still is agent.name."`
	Headers      Headers        `yaml:"headers" doc:"Further headers sent to the origin of this source and to no other, such as Cookie or Authorization: {Name: value}. Searching then needs a login, unless open is true."`
	Hours        string         `yaml:"hours" doc:"When the robot may visit the hosts of this source: days, times or both, several separated by commas, such as mon-fri 20:00-06:00, sat, sun. Empty is always. A window over midnight belongs to the day on which it begins."`
	TimeZone     string         `yaml:"time_zone" doc:"Time zone of hours, such as Europe/Vilnius. Empty: that of this machine."`
	User         string         `yaml:"user" doc:"Login at a share, or at the origin of a web site (HTTP Basic)."`
	Weight       float64        `yaml:"weight" doc:"How much the freshness of its pages counts beside others; 0 is 1."`
	Password     string         `yaml:"password" doc:"Password of user; better password_file or $FRESHET_PASSWORD_<HOST>."`
	PasswordFile string         `yaml:"password_file" doc:"File with the password of user."`
	Open         bool           `yaml:"open" doc:"Everybody who reaches the search page may find what this source has, although it is read with a login or headers. Else searching needs a login as with console.private."`
	KeyFile      string         `yaml:"key_file" doc:"Private SSH key for sftp://, tried before the password."`
	HostKeys     []string       `yaml:"host_keys" doc:"Accepted SSH host keys of sftp://, such as ssh-ed25519 AAAA... Empty: the key of the first connection, which is remembered."`
	KnownHosts   string         `yaml:"known_hosts" doc:"File of SSH host keys as ~/.ssh/known_hosts, for sftp:// without host_keys: hosts that are not in it are refused."`
	TrustRange   bool           `yaml:"trust_range" doc:"Offer the password to every machine of an address range that answers, also over protocols that reveal it: ftp, webdav, index+http, sftp without host_keys and known_hosts."`
}

// HasLogin reports whether the source is read with a login: what it has is not for
// everybody. Headers of a web site count as one.
func (s *Source) HasLogin() bool {
	if !s.Share() {
		return s.User != "" || len(s.Headers) > 0
	}
	_, rest, _ := strings.Cut(s.URL, "://")
	authority, _, _ := strings.Cut(rest, "/")
	return s.User != "" || s.Password != "" || s.PasswordFile != "" || s.KeyFile != "" || strings.Contains(authority, "@")
}

// SearchNeedsLogin reports whether searching and playing need a login: console.private
// says so, or a source that is read with a login is not open.
func (c *Config) SearchNeedsLogin() bool {
	return c.Console.Private || slices.ContainsFunc(c.Sources, func(s Source) bool { return s.HasLogin() && !s.Open })
}

// Crawl configures the web robot.
type Crawl struct {
	Agents        int            `yaml:"agents" doc:"Hosts worked at the same time."`
	Delay         *time.Duration `yaml:"delay" doc:"Least time between two requests to a host. Empty: 1s, and none for loopback hosts. With 0s there is no pause at hosts that a source names, and five response times (delay_factor) elsewhere."`
	Connections   int            `yaml:"connections" doc:"Requests at once to a host that a source names and whose delay is 0."`
	DelayFactor   float64        `yaml:"delay_factor" doc:"Response times of a host that pass between two requests to it, unless its delay is 0 by a source."`
	MaxDelay      time.Duration  `yaml:"max_delay" doc:"Longest delay that a Crawl-delay, a Retry-After, a slow host or failures can set."`
	Noise         int            `yaml:"noise" doc:"Bits of its 64-bit fingerprint by which the text of a page may differ and count as unchanged, for sites whose pages carry changing ornaments; 0: every difference of the text counts."`
	DelayPopular  time.Duration  `yaml:"delay_popular" doc:"Least delay of hosts with 10,000 pages and more; smaller ones come nearer to delay, those under 100 pages have it."`
	PerAddress    int            `yaml:"per_address" doc:"Hosts of one IP address asked within delay, of those to which links led; at most one of a domain."`
	Ordering      string         `yaml:"ordering" doc:"Which page of a host next: breadth-first, host-balanced, opic, or script:FILE."`
	Policy        string         `yaml:"policy" doc:"When a page is visited again: half-change (when it has changed with probability 1/2), adaptive (sooner after a change, later after none), or, with a budget, greedy, most-likely-changed, sweep, or one of the policies of freshet revisit plan (docs/freshness.md)."`
	Budget        float64        `yaml:"budget" doc:"Requests a second in all; 0 is no limit but politeness."`
	BudgetBytes   Bytes          `yaml:"budget_bytes" doc:"Bytes of answers a day in all; 0 is no limit. The policy then weighs what a page's visit costs."`
	MinRevisit    time.Duration  `yaml:"min_revisit" doc:"A page is not asked for more often."`
	MaxRevisit    time.Duration  `yaml:"max_revisit" doc:"A page is asked for at least so often."`
	HostBytesDay  Bytes          `yaml:"host_bytes_day" doc:"So many bytes of bodies, before compression, are kept of one host in a day; then it rests for the rest of it, so that one host cannot fill the disk. 0 is no limit."`
	MaxFailedAge  time.Duration  `yaml:"max_failed_age" doc:"A page that cannot be fetched any more (its host is gone or answers 5xx, its robots.txt cannot be read) leaves the index after so long."`
	MaxBody       Bytes          `yaml:"max_body" doc:"Longest body, after decompression."`
	Timeout       time.Duration  `yaml:"timeout" doc:"Longest time of one request."`
	HostsInMemory int            `yaml:"hosts_in_memory" doc:"Hosts of which is known in memory when they are next; the others wait on disk, at some microseconds each. 250 bytes a host."`
	Traps         Traps          `yaml:"traps" doc:"Bounds by which endless spaces of addresses are recognised; what they kept away stands on the status page, with an example."`
	Types         []string       `yaml:"types" doc:"Only documents of these types are kept: html, pdf, text, image, audio, video, json or a subtype; empty is all. Images of pages (src, srcset) are fetched only where image is among them."`
	Proxy         string         `yaml:"proxy" doc:"Forward proxy (http://, https:// or socks5://) of all requests but those to loopback hosts. Empty: HTTP_PROXY, HTTPS_PROXY and NO_PROXY of the environment; none: no proxy."`
	ProxyBypass   []string       `yaml:"proxy_bypass" doc:"Hosts that are asked without the proxy, as in NO_PROXY: names with their subdomains, addresses, networks."`
	CACert        string         `yaml:"cacert" doc:"File with certificates (PEM) of authorities that are trusted besides the system's."`
	Insecure      bool           `yaml:"insecure" doc:"Accept certificates that do not verify."`
	Resolver      string         `yaml:"resolver" doc:"DNS server (address:port) instead of the system's."`
}

// Traps are the bounds of trap.Limits.
type Traps struct {
	Segments int   `yaml:"segments" doc:"Segments of a path."`
	Repeats  int   `yaml:"repeats" doc:"Times that a sequence of segments may stand in a path one after the other."`
	Params   int   `yaml:"params" doc:"Parameters of a query."`
	Years    int   `yaml:"years" doc:"Dates further ahead are a calendar's."`
	HostMax  int64 `yaml:"host_pages" doc:"Pages of a host."`
	Shape    int   `yaml:"one_shape" doc:"Addresses of a host that differ in numbers only."`
	Dated    int   `yaml:"dated" doc:"... that end in a year and a month."`
	Deep     int   `yaml:"deep" doc:"Addresses of a host below eight folders; more where the host has eight times as many others."`
}

// Render configures the browser.
type Render struct {
	Mode      string        `yaml:"mode" doc:"off: never; auto: where the robot expects to gain links or text; all: every page."`
	Chromium  string        `yaml:"chromium" doc:"Path of Chromium. Empty: looked for. Without one, pages are taken as they are fetched and wait."`
	Remote    string        `yaml:"remote" doc:"Debugging address (ws:// or http://) of a running Chromium instead."`
	NoSandbox bool          `yaml:"no_sandbox" doc:"Start Chromium without its sandbox. As root there is none: auto renders nothing and all is an error without this key. Better run freshet as a user."`
	Agents    int           `yaml:"agents" doc:"Pages rendered at the same time; 0 renders none for now."`
	Always    []string      `yaml:"always" doc:"Regular expressions of URLs that are rendered whatever the robot thinks."`
	Never     []string      `yaml:"never" doc:"Regular expressions of URLs that are never rendered; goes before always."`
	Cost      float64       `yaml:"cost" doc:"Renders that one which gains something is worth: a page is rendered if it gains with a chance above 1/cost."`
	LinksOnly bool          `yaml:"links_only" doc:"Only new addresses count as gain, not text."`
	Timeout   time.Duration `yaml:"timeout" doc:"Longest time of one page."`
	MaxBytes  Bytes         `yaml:"max_bytes" doc:"Most that one page may load."`
	MaxMemory Bytes         `yaml:"max_memory" doc:"A browser that takes more is replaced."`
	MaxAge    time.Duration `yaml:"max_age" doc:"A browser is replaced after so long."`
	MaxPages  int           `yaml:"max_pages" doc:"A browser is replaced after so many pages."`
}

// PDF bounds what reading PDF documents may cost.
type PDF struct {
	Memory    Bytes         `yaml:"max_memory" doc:"Most memory of one document; one that wants more is not read until it changes."`
	Time      time.Duration `yaml:"max_time" doc:"Longest CPU time of one document; one that takes longer is not read until it or the limit changes."`
	Instances int           `yaml:"instances" doc:"Documents read at the same time, by all robots and the indexer together."`
}

// Share configures the share robot.
type Share struct {
	Robots      int           `yaml:"robots" doc:"Hosts scanned at the same time."`
	Policy      string        `yaml:"policy" doc:"Which part next: freshness, likely, loss or sweep (docs/share-robot.md)."`
	PartTime    time.Duration `yaml:"max_part_time" doc:"Longest scan of one part."`
	PartMemory  Bytes         `yaml:"max_part_memory" doc:"Most memory for the media of one part."`
	Media       bool          `yaml:"media" doc:"Read tags and documents' text."`
	Timeout     time.Duration `yaml:"timeout" doc:"Longest wait for one answer of a host."`
	Offline     string        `yaml:"offline" doc:"Files of hosts that are off: grey or hide."`
	ForgetAfter time.Duration `yaml:"forget_after" doc:"A host gone for so long is dropped."`
	Knowledge   string        `yaml:"knowledge" doc:"CSV or JSON file with genres, actors, ratings."`
}

// Index configures the text index.
type Index struct {
	Languages  []string      `yaml:"languages" doc:"Languages that query words are stemmed in."`
	Popularity float64       `yaml:"popularity_weight" doc:"How much links count beside the text."`
	Freshness  float64       `yaml:"freshness_weight" doc:"How much age counts, 0 to 1."`
	HalfLife   time.Duration `yaml:"half_life" doc:"Age at which half of the freshness is gone."`
}

// Throttle configures the threshold controller.
type Throttle struct {
	Thresholds []int `yaml:"thresholds" doc:"j1 <= j2 <= ...: pages waiting for the indexer up to which a mode is active; empty is no control."`
	Modes      []int `yaml:"modes" doc:"Active agents by mode, fewest first; one more than thresholds."`
}

// Signals configures the receivers.
type Signals struct {
	IndexNow bool              `yaml:"indexnow" doc:"Take notices by the IndexNow protocol at /indexnow from everybody who can put a key file on a host of the sources."`
	Secrets  map[string]string `yaml:"secrets" doc:"Sensor name: shared secret of its signed events."`
	Topics   []string          `yaml:"topics" doc:"Feeds and pages to subscribe to at their WebSub hubs."`
	Callback string            `yaml:"callback" doc:"Address under which hubs reach this server, such as https://search.example.org."`
}

// Lab configures the console's page of sweeps of the simulator.
type Lab struct {
	Sweeps []string `yaml:"sweeps" doc:"Directories of results of freshet monitor sweep, or directories of such, where the console shows progress and can pause and stop."`
}

// Archive configures WARC files.
type Archive struct {
	Dir       string        `yaml:"dir" doc:"Folder of the WARC files. Empty: warc in the data directory."`
	FileSize  Bytes         `yaml:"file_size" doc:"A new file is begun at this size. With a bucket, no file is in it before it is finished: 64MB is a good size then."`
	Packing   string        `yaml:"compression" doc:"fast: gzip in one pass, at most an eighth larger than its fastest level for a third to half of the work; gzip: a tenth to a quarter fewer bytes for three to five times the work; none: plain .warc files."`
	Bucket    string        `yaml:"bucket" doc:"s3://BUCKET/PREFIX?endpoint=HOST:PORT&region=R&insecure=true: finished files are sent there, and bodies of all nodes read from there. Keys come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."`
	KeepLocal time.Duration `yaml:"keep_local" doc:"With a bucket: how long a finished file stays in the folder after it was sent; 0 is for ever."`
}

// Retention bounds the calibration logs.
type Retention struct {
	Changes time.Duration `yaml:"changes" doc:"Change history (freshet export changes)."`
}

// Default returns the configuration of an empty file.
func Default() *Config {
	return &Config{
		MinFree: 256 << 20,
		Lease:   store.DefaultLease,
		Console: Console{Listen: "127.0.0.1:8080", Title: "Freshet", Rate: 20},
		Agent:   Agent{Name: "freshet"},
		Crawl:   Crawl{Agents: 16, Connections: 1, DelayFactor: 5, MaxDelay: time.Hour, DelayPopular: 500 * time.Millisecond, PerAddress: 4, Ordering: "breadth-first", Policy: "half-change", MinRevisit: 5 * time.Minute, MaxRevisit: 30 * 24 * time.Hour, MaxFailedAge: 30 * 24 * time.Hour, HostBytesDay: 10 << 30, MaxBody: 16 << 20, Timeout: 30 * time.Second, HostsInMemory: 1 << 16, Traps: Traps{Segments: 24, Repeats: 3, Params: 16, Years: 2, HostMax: 5_000_000, Shape: 100_000, Dated: 600, Deep: 300}},
		Render:  Render{Mode: "auto", Agents: 2, Cost: 4, Timeout: 20 * time.Second, MaxBytes: 16 << 20, MaxMemory: 2 << 30, MaxAge: 30 * time.Minute, MaxPages: 1000},
		PDF:     PDF{Memory: 256 << 20, Time: 20 * time.Second, Instances: 2},
		Share:   Share{Robots: 10, Policy: "freshness", PartTime: 90 * time.Second, PartMemory: 10 << 20, Media: true, Timeout: 20 * time.Second, Offline: "grey", ForgetAfter: 60 * 24 * time.Hour},
		Index:   Index{Languages: []string{"en", "ru", "lt"}, Popularity: 1, Freshness: .3, HalfLife: 90 * 24 * time.Hour},
		Archive: Archive{FileSize: 1 << 30, Packing: "fast"},
		Retain:  Retention{Changes: 90 * 24 * time.Hour},
	}
}

// Share reports whether the source is a file share rather than a web site.
func (s *Source) Share() bool {
	scheme, _, _ := strings.Cut(s.URL, ":")
	return scheme != "http" && scheme != "https"
}

// NoProxy is the value of crawl.proxy that ignores the environment's proxies.
const NoProxy = "none"

// DefaultDelay is the least time between two requests to a host that is not loopback,
// where crawl.delay is not given.
const DefaultDelay = time.Second

// maxConnections bounds the requests at once to one host.
const maxConnections = 64

// checkPace finds delays and connections that cannot work.
func (c *Config) checkPace(fail func(string, ...any)) {
	check := func(prefix string, delay *time.Duration, connections, minConnections int) {
		if delay != nil && *delay < 0 {
			fail("%s.delay: %v is negative", prefix, *delay)
		}
		if connections < minConnections || connections > maxConnections {
			fail("%s.connections: %d is not in %d to %d", prefix, connections, minConnections, maxConnections)
		}
	}
	check("crawl", c.Crawl.Delay, c.Crawl.Connections, 1)
	for i, s := range c.Sources {
		check(fmt.Sprintf("sources[%d]", i), s.Delay, s.Connections, 0)
	}
	if c.Crawl.DelayFactor <= 0 || c.Crawl.MaxDelay <= 0 {
		fail("crawl.delay_factor and crawl.max_delay are above 0")
	}
	if c.Crawl.Noise < 0 || c.Crawl.Noise > 64 {
		fail("crawl.noise: %d is not in 0 to 64", c.Crawl.Noise)
	}
}

// Check returns what cannot work, a line each.
func (c *Config) Check() error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	c.checkConsole(fail)
	c.checkPace(fail)
	for i, s := range c.Sources {
		if u, err := url.Parse(s.URL); err != nil || u.Scheme == "" {
			fail("sources[%d].url: %q is no URL with a scheme", i, s.URL)
		}
		if !slices.Contains([]string{"", "host", "domain", "prefix", "any"}, s.Scope) {
			fail("sources[%d].scope: %q is none of host, domain, prefix, any", i, s.Scope)
		}
		for name, list := range map[string][]string{"include": s.Include, "exclude": s.Exclude} {
			for _, p := range list {
				if _, err := regexp.Compile(p); err != nil {
					fail("sources[%d].%s: %q: %v", i, name, p, err)
				}
			}
		}
		if s.Depth < 0 {
			fail("sources[%d].depth: %d is negative", i, s.Depth)
		}
		s.checkSite(fmt.Sprintf("sources[%d].", i), fail)
	}
	if c.Crawl.Agents < 0 || c.Share.Robots < 0 {
		fail("crawl.agents and share.robots are not negative")
	}
	if t := c.Crawl.Traps; min(int64(t.Segments), int64(t.Repeats), int64(t.Params), int64(t.Years), t.HostMax, int64(t.Shape), int64(t.Dated), int64(t.Deep)) < 1 {
		fail("crawl.traps: %+v; each bound is at least 1", t)
	}
	c.checkRender(fail)
	if !slices.Contains([]string{"freshness", "likely", "loss", "sweep"}, c.Share.Policy) {
		fail("share.policy: %q is none of freshness, likely, loss, sweep", c.Share.Policy)
	}
	if c.Share.PartTime <= 0 || c.Share.PartMemory < 1 || c.Share.Timeout <= 0 {
		fail("share.max_part_time, share.max_part_memory and share.timeout are above 0")
	}
	if !slices.Contains([]string{"grey", "hide"}, c.Share.Offline) {
		fail("share.offline: %q is neither grey nor hide", c.Share.Offline)
	}
	if c.Database != "" && !strings.HasPrefix(c.Database, "postgres://") && !strings.HasPrefix(c.Database, "postgresql://") {
		fail("database: %q does not begin with postgres://", c.Database)
	}
	if c.Lease < time.Second {
		fail("lease: %v is shorter than a second", c.Lease)
	}
	if c.Index.Freshness < 0 || c.Index.Freshness > 1 || c.Index.Popularity < 0 {
		fail("index.freshness_weight lies in 0 to 1, popularity_weight is not negative")
	}
	if err := throttle.Check(c.Throttle.Thresholds, c.Throttle.Modes); err != nil {
		fail("throttle.%w", err)
	}
	return errors.Join(errs...)
}

func (c *Config) checkRender(fail func(string, ...any)) {
	r := &c.Render
	if !slices.Contains([]string{"fast", "gzip", "none"}, c.Archive.Packing) {
		fail("archive.compression: %q is none of fast, gzip, none", c.Archive.Packing)
	}
	if !slices.Contains([]string{"off", "auto", "all"}, r.Mode) {
		fail("render.mode: %q is none of off, auto, all", r.Mode)
	}
	if r.Agents < 0 || r.MaxPages < 1 {
		fail("render.agents is not negative, render.max_pages at least 1")
	}
	if r.Cost < 1 {
		fail("render.cost: %g is below 1, the cost of a render that surely gains", r.Cost)
	}
	for name, list := range map[string][]string{"always": r.Always, "never": r.Never} {
		for _, s := range list {
			if _, err := regexp.Compile(s); err != nil {
				fail("render.%s: %q: %v", name, s, err)
			}
		}
	}
}

// minToken is the least length of a token of the API.
const minToken = 16

func (c *Config) checkConsole(fail func(string, ...any)) {
	k := &c.Console
	host, _, err := net.SplitHostPort(k.Listen)
	if err != nil {
		fail("console.listen: %q is no address:port", k.Listen)
		return
	}
	ip := net.ParseIP(host)
	loopback := host == "localhost" || (ip != nil && ip.IsLoopback())
	if !loopback && k.Password == "" && k.Header == "" && len(k.Tokens) == 0 {
		fail("console.listen: %s can be reached from outside: set console.password (freshet config hash), console.tokens or console.trusted_header", k.Listen)
	}
	for i, t := range k.Tokens {
		if len(t) < minToken {
			fail("console.tokens[%d]: %d characters, at least %d are needed: openssl rand -hex 32 makes one", i, len(t), minToken)
		}
	}
	if u, err := url.Parse(k.PublicURL); k.PublicURL != "" && (err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "") {
		fail("console.public_url: %q is no address such as https://search.example.org", k.PublicURL)
	}
	if (k.TLSCert == "") != (k.TLSKey == "") {
		fail("console.tls_cert and console.tls_key: give both or none")
	}
	if k.TLSCert != "" && len(k.ACME.Hosts) > 0 {
		fail("console.acme.hosts and console.tls_cert: give one of them")
	}
	for i, name := range k.ACME.Hosts {
		if net.ParseIP(name) != nil || !strings.Contains(name, ".") || strings.ContainsAny(name, ":/* ") {
			fail("console.acme.hosts[%d]: %q is no host name such as search.example.org", i, name)
		}
	}
	for i, name := range k.Hosts {
		if name != "*" && strings.ContainsAny(name, "/* @") {
			fail("console.hosts[%d]: %q is no host name", i, name)
		}
	}
	if len(k.Operators) > 0 && k.Header == "" {
		fail("console.operators: names users of console.trusted_header, which is not set")
	}
	if c.Console.Header != "" && len(c.Console.Proxies) == 0 {
		fail("console.trusted_proxies: name the proxies from which %s is believed", c.Console.Header)
	}
	for _, p := range c.Console.Proxies {
		if _, _, err := net.ParseCIDR(p); err != nil && net.ParseIP(p) == nil {
			fail("console.trusted_proxies: %q is neither an address nor a network", p)
		}
	}
}
