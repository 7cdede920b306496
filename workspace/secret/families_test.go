package secret

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// family is a published format of tokens, with a token made for the test: in the text
// that it usually stands in.
type family struct {
	name, text, token string
	// ours means that gitleaks 8.30.1 has no rule for the format.
	ours bool
}

// families returns one token or more of each issuer whose format is known. The tokens are
// the same in every run, and belong to nobody.
func families() []family {
	const low, caps = "abcdefghijklmnopqrstuvwxyz0123456789", capitals + "0123456789"
	const url = letters + "_-"
	rnd := func(prefix, alphabet string, n int) string { return prefix + fixedToken(alphabet, n) }
	dotted := func(parts ...string) string {
		text := parts[0]
		for _, p := range parts[1:] {
			text += "." + p
		}
		return text
	}
	uuid := func() string {
		h := fixedToken(hexDigits, 32)
		return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
	}
	alone := func(name, token string) family {
		return family{name: name, text: `value: "` + token + "\"\n", token: token}
	}
	as := func(name, variable, token string) family {
		return family{name: name, text: variable + "=" + token + "\n", token: token}
	}
	ours := func(f family) family {
		f.ours = true
		return f
	}
	discord := base64.RawURLEncoding.EncodeToString([]byte("938214671205517" + "394"))
	return []family{
		alone("1password service", rnd("ops_eyJ", letters, 320)),
		alone("1password secret key", "A3-"+rnd("", caps, 6)+rnd("-", caps, 11)+rnd("-", caps[1:], 5)+rnd("-", caps[2:], 5)+rnd("-", caps[3:], 5)),
		alone("adobe", rnd("p8e-", low, 32)),
		as("airtable", "airtable", dotted(rnd("pat", letters, 14), rnd("", hexDigits, 64))),
		as("algolia", "ALGOLIA_API_KEY", rnd("", low, 32)),
		alone("alibaba", rnd("LTAI", low, 20)),
		alone("anthropic", rnd("sk-ant-api03-", url, 93)+"AA"),
		alone("artifactory", rnd("AKCp", letters, 69)),
		alone("atlassian", rnd("ATATT3", letters+"_-=", 186)),
		as("jira", "JIRA_API_TOKEN", rnd("", low, 20)+rnd("", hexDigits, 4)),
		alone("aws", rnd("AKIA", capitals+"234567", 16)),
		alone("aws bedrock", rnd("ABSK", letters+"+/", 130)),
		alone("azure", rnd("", letters, 3)+rnd("7Q~", letters+"_-", 32)),
		ours(alone("bitbucket app", rnd("ATBB", letters, 32))),
		as("bitbucket", "BITBUCKET_CLIENT_SECRET", rnd("", low, 64)),
		ours(alone("buildkite", rnd("bkua_", hexDigits, 40))),
		ours(alone("circleci", rnd("CCIPAT_", letters, 60))),
		as("clickhouse", "token", rnd("4b1d", letters, 38)),
		alone("clojars", rnd("CLOJARS_", low, 60)),
		as("cloudflare", "CLOUDFLARE_API_TOKEN", rnd("", low, 40)),
		as("cloudflare global", "cloudflare_api_key", rnd("", hexDigits, 37)),
		alone("cloudflare origin", rnd("v1.0-", hexDigits, 24)+rnd("-", hexDigits, 146)),
		as("codecov", "CODECOV_TOKEN", rnd("", low[:16], 32)),
		as("cohere", "COHERE_API_KEY", rnd("", letters, 40)),
		as("confluent", "CONFLUENT_SECRET", rnd("", low, 64)),
		ours(alone("contentful", rnd("CFPAT-", url, 43))),
		ours(alone("crates.io", rnd("cio", letters, 32))),
		alone("databricks", rnd("dapi", hexDigits, 32)),
		as("datadog", "DATADOG_API_KEY", rnd("", hexDigits, 40)),
		alone("digitalocean", rnd("dop_v1_", hexDigits, 64)),
		ours(as("discord bot", "bot", dotted(discord, rnd("", url, 6), rnd("", url, 38)))),
		as("discord", "DISCORD_CLIENT_SECRET", rnd("", low, 32)),
		ours(alone("docker", rnd("dckr_pat_", url, 27))),
		alone("doppler", rnd("dp.pt.", low, 43)),
		ours(alone("doppler service", dotted("dp.st", "prd_backend", rnd("", letters, 43)))),
		alone("duffel", rnd("duffel_live_", low, 43)),
		alone("dynatrace", dotted("dt0c01", rnd("", low, 24), rnd("", low, 64))),
		alone("easypost", rnd("EZAK", letters, 54)),
		alone("facebook", rnd("EAAM", letters, 180)),
		as("fastly", "FASTLY_API_TOKEN", rnd("", low, 32)),
		ours(alone("figma", rnd("figd_", url, 43))),
		alone("fly", rnd("fo1_", url, 43)),
		alone("fly macaroon", rnd("fm2_", letters+"+/", 140)),
		alone("github", rnd("ghp_", letters, 36)),
		alone("github fine", rnd("github_pat_", letters, 22)+rnd("_", letters, 59)),
		alone("github app", rnd("ghs_", letters, 36)),
		alone("gitlab", rnd("glpat-", url, 20)),
		alone("gitlab job", rnd("glcbt-64_", url, 20)),
		alone("gitlab feed", rnd("glft-", url, 20)),
		alone("gitlab runner", rnd("GR1348941", url, 20)),
		alone("google", rnd("AIza", url, 35)),
		ours(alone("google client", rnd("GOCSPX-", url, 28))),
		alone("grafana", rnd("glsa_", letters, 32)+rnd("_", hexDigits, 8)),
		alone("grafana cloud", rnd("glc_", letters, 120)),
		alone("harness", dotted("pat", rnd("", letters, 22), rnd("", letters, 24), rnd("", letters, 20))),
		as("heroku", "HEROKU_API_KEY", uuid()),
		alone("heroku v2", rnd("HRKU-AA", url, 58)),
		ours(alone("hubspot", "pat-na1-"+uuid())),
		alone("hugging face", rnd("hf_", letters[:52], 34)),
		ours(alone("langsmith", rnd("lsv2_pt_", hexDigits, 32)+rnd("_", hexDigits, 10))),
		alone("linear", rnd("lin_api_", low, 40)),
		as("mailchimp", "MAILCHIMP_API_KEY", rnd("", hexDigits, 32)+"-us12"),
		as("mailgun", "MAILGUN_API_KEY", rnd("key-", hexDigits, 32)),
		alone("maxmind", rnd("", letters, 6)+rnd("_", letters, 29)+"_mmk"),
		ours(alone("netlify token", rnd("nfp_", letters, 36))),
		as("netlify", "NETLIFY_AUTH_TOKEN", rnd("", url, 43)),
		as("new relic", "NEW_RELIC_API_KEY", rnd("NRAK-", caps, 27)),
		as("new relic insert", "new_relic_insert_key", rnd("NRII-", low, 32)),
		ours(alone("new relic license", rnd("", hexDigits, 36)+"FFFFNRAL")),
		alone("notion", rnd("ntn_", "0123456789", 11)+rnd("", letters, 35)),
		alone("npm", rnd("npm_", letters, 36)),
		ours(alone("nuget", rnd("oy2", low, 43))),
		alone("octopus", rnd("API-", caps, 26)),
		as("okta", "OKTA_API_TOKEN", rnd("00", url, 40)),
		alone("openai", rnd("sk-proj-", url, 74)+"T3BlbkFJ"+rnd("", letters, 74)),
		alone("openshift", rnd("sha256~", url, 43)),
		alone("perplexity", rnd("pplx-", letters, 48)),
		alone("planetscale", rnd("pscale_tkn_", url, 43)),
		alone("planetscale password", rnd("pscale_pw_", url, 43)),
		alone("postman", rnd("PMAK-", hexDigits, 24)+rnd("-", hexDigits, 34)),
		alone("prefect", rnd("pnu_", letters, 36)),
		alone("pulumi", rnd("pul-", hexDigits, 40)),
		alone("pypi", rnd("pypi-AgEIcHlwaS5vcmc", url, 120)),
		alone("readme", rnd("rdme_", low, 70)),
		alone("rubygems", rnd("rubygems_", hexDigits, 48)),
		alone("sendgrid", dotted("SG", rnd("", url, 22), rnd("", url, 43))),
		alone("sendinblue", rnd("xkeysib-", hexDigits, 64)+rnd("-", low, 16)),
		alone("sentry user", rnd("sntryu_", hexDigits, 64)),
		alone("shippo", rnd("shippo_live_", hexDigits, 40)),
		alone("shopify", rnd("shpat_", hexDigits, 32)),
		alone("slack", "xoxb-"+rnd("", "123456789", 12)+rnd("-", "123456789", 12)+rnd("-", letters, 24)),
		as("snyk", "SNYK_TOKEN", uuid()),
		as("sonar", "SONAR_TOKEN", rnd("squ_", hexDigits, 40)),
		alone("sourcegraph", rnd("sgp_", hexDigits, 16)+rnd("_", hexDigits, 40)),
		alone("square", rnd("sq0atp-", url, 22)),
		alone("stripe", "sk_"+rnd("live_", letters, 24)),
		ours(alone("supabase", rnd("sbp_", hexDigits, 40))),
		ours(alone("tailscale", rnd("tskey-auth-k", letters, 11)+rnd("-", letters, 24))),
		alone("terraform", dotted(rnd("", letters, 14), "atlasv1", rnd("", url, 67))),
		as("travis", "TRAVIS_API_TOKEN", rnd("", low, 22)),
		alone("twilio", rnd("SK", hexDigits, 32)),
		as("twitch", "TWITCH_CLIENT_SECRET", rnd("", low, 30)),
		as("twitter", "TWITTER_API_SECRET", rnd("", low, 50)),
		as("typeform", "TYPEFORM_TOKEN", rnd("tfp_", low, 59)),
		alone("vault", rnd("hvs.", url, 95)),
		ours(as("wandb", "WANDB_API_KEY", rnd("", hexDigits, 40))),
		as("zendesk", "ZENDESK_API_TOKEN", rnd("", low, 40)),
	}
}

// TestFamilies finds a token of each format, and nothing but the token.
func TestFamilies(t *testing.T) {
	guard := NewGuard(nil)
	for _, f := range families() {
		if got, want := guard.Redact("a\n"+f.text+"b\n"), "a\n"+strings.Replace(f.text, f.token, redacted, 1)+"b\n"; got != want {
			t.Errorf("%s: %q", f.name, got)
		}
	}
}

// TestTwins holds that values of the same form under names that mean no secret, and names
// without a value, are let pass.
func TestTwins(t *testing.T) {
	guard := NewGuard(nil)
	hex32, hex40, hex64 := fixedToken(hexDigits, 32), fixedToken(hexDigits, 40), fixedToken(hexDigits, 64)
	for _, text := range []string{
		"CLOUDFLARE_ZONE_ID=" + hex32, "cloudflare_account_id: " + hex32, "discord_channel = " + hex32, "heroku_app_id=6f1c2b1e-8a5d-4f7e-9a51-3b8f5d2c7e90",
		"DISCORD_PUBLIC_KEY=" + hex64, "algolia_index_hash=" + hex32, "okta_token_sha256: " + hex64, "codecov_digest = " + hex32,
		"HEROKU_API_KEY=${HEROKU_API_KEY}", "NETLIFY_AUTH_TOKEN: ${{ secrets.NETLIFY_AUTH_TOKEN }}", "const TwilioAuthTokenHeader = \"X-Twilio-Signature\"",
		"wandb: " + hex40, "sha256:" + hex64, "key-" + fixedToken(letters, 12), "pattern.match", "secret_access", "terraform.atlasv1.md", "A3-PAPER-SIZES",
		"API-VERSION-2", "lsv2_pt_", "MTIz.NDU2.Nzg5", "NDcxMg.aaaaaa." + fixedToken(letters, 30), "v1.0-" + hex40, "x-us12", hex32 + "-usage",
		"figd_your_token_here", "tskey-auth-XXXX", "atlassian_token = os.environ[\"ATLASSIAN_TOKEN\"]", "circle_ci_key: deadbeef",
		"github.com/okta/okta-sdk-golang/v2 v2.20.0 h1:" + fixedToken(letters+"+/", 43) + "=",
		`"integrity": "sha512-` + fixedToken(letters+"+/", 86) + `=="`, `checksum = "` + hex64 + `"`, "heroku/nodejs@sha256:" + hex64,
	} {
		if got := guard.Redact(text); got != text {
			t.Errorf("redacted: %q to %q", text, got)
		}
	}
}

// TestOwnSource lets hone's own text pass, with its lock files and hashes, except for four
// scripts that are about secrets.
func TestOwnSource(t *testing.T) {
	files := 0
	err := filepath.WalkDir("../..", func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", ".hone", "bin", "dist"}, d.Name()):
			return filepath.SkipDir
		}
		if !slices.Contains([]string{".go", ".md", ".txtar", ".sum", ".mod", ".json", ".toml", ".yaml", ".yml", ".sh", ".py"}, filepath.Ext(path)) {
			return nil
		}
		if slices.Contains([]string{"fix_findings.txtar", "g8.txtar", "threat_secret_names.txtar", "threat_secret_values.txtar"}, filepath.Base(path)) {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		if got := findAllOf(string(content)); got != "" {
			t.Errorf("%s: %s", path, got)
		}
		return nil
	})
	if err != nil || files < 500 {
		t.Errorf("%d files, %v", files, err)
	}
}

// findAllOf says which secrets are recognized in a text; empty if it finds nothing.
func findAllOf(text string) string {
	said := ""
	for _, s := range findAll(formats(), text) {
		said += fmt.Sprintf("%s at %d ", s.what, s.start)
	}
	return said
}

// TestSecondOpinion compares the rules with those of gitleaks: whatever it finds in the
// corpus, hone finds too (TestFamilies), and it must know most of the formats, so that the
// corpus is one of real formats and not of hone's own making.
func TestSecondOpinion(t *testing.T) {
	program := gitleaks()
	if program == "" {
		t.Skip("SKIPPED: gitleaks is not installed, so that nobody else judges the formats of tokens; make gitleaks installs it")
	}
	dir := t.TempDir()
	all := families()
	for i, f := range all {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%03d.txt", i)), []byte(f.text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	report := filepath.Join(t.TempDir(), "report.json")
	if out, err := exec.Command(program, "dir", dir, "--report-format", "json", "--report-path", report, "--no-banner", "--exit-code", "0").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(report)
	var found []struct{ File, RuleID string }
	if err == nil {
		err = json.Unmarshal(text, &found)
	}
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string]string{}
	for _, f := range found {
		if f.RuleID != "generic-api-key" { // which judges the text around a value, not its format
			rules[filepath.Base(f.File)] += f.RuleID + " "
		}
	}
	for i, f := range all {
		switch by := rules[fmt.Sprintf("%03d.txt", i)]; {
		case by == "" && !f.ours:
			t.Errorf("%s: gitleaks does not find it: is the format right?", f.name)
		case by != "" && f.ours:
			t.Logf("%s: this gitleaks has a rule for it: %s", f.name, by)
		}
	}
	t.Logf("of %d tokens gitleaks finds %d", len(all), len(rules))
}

// gitleaks returns the program; empty if it is not installed.
func gitleaks() string {
	for _, name := range []string{filepath.Join("..", "..", "bin", "gitleaks"), "gitleaks"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}
