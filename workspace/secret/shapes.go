package secret

import "slices"

// allShapes returns the forms of secrets that the guard knows. Issuers publish
// these facts. A new one needs a row in the test's table too.
func allShapes() []shape {
	var (
		alnum  = chars("a-zA-Z0-9")
		word   = chars("a-zA-Z0-9_")
		url    = chars("a-zA-Z0-9_-")
		base64 = chars("a-zA-Z0-9+/")
		hex    = chars("a-f0-9")
		upper  = chars("A-Z2-7")
	)
	list := []shape{
		token("an AWS access key", upper, 16, 16, "AKIA", "ASIA", "ABIA", "ACCA"),
		token("an AWS Bedrock key", base64, 109, 269, "ABSK"),
		token("an Alibaba access key", alnum, 20, 20, "LTAI"),
		token("a GitHub token", alnum, 36, 255, "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
		token("a GitHub token", word, 60, 255, "github_pat_"),
		token("a GitLab token", url, 20, 255, "glpat-", "gldt-", "glrt-", "glptt-", "glagent-", "gloas-", "glcbt-", "glffct-", "glft-", "glimt-", "glsoat-", "GR1348941"),
		token("a Bitbucket token", alnum, 28, 64, "ATBB"),
		token("an Atlassian token", chars("a-zA-Z0-9_=-"), 60, 255, "ATATT3", "ATCTT3"),
		token("a Trello token", alnum, 72, 72, "ATTA"),
		token("a Slack token", url, 24, 255, "xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxo-", "xoxe-", "xapp-"),
		token("a Slack webhook", chars("a-zA-Z0-9/"), 40, 120, "hooks.slack.com/services/", "hooks.slack.com/workflows/", "hooks.slack.com/triggers/"),
		token("a Discord webhook", chars("a-zA-Z0-9_/-"), 70, 120, "discord.com/api/webhooks/", "discordapp.com/api/webhooks/"),
		token("a Teams webhook", chars("a-zA-Z0-9/@-"), 100, 255, "webhook.office.com/webhookb2/"),
		token("a Stripe key", alnum, 20, 255, "sk_live_", "rk_live_"),
		token("a Stripe webhook secret", base64, 32, 64, "whsec_"),
		token("a Square token", url, 22, 60, "sq0atp-", "sq0csp-"),
		token("a Google API key", url, 35, 35, "AIza"),
		token("a Google client secret", url, 24, 40, "GOCSPX-"),
		token("a Google access token", url, 60, 1024, "ya29."),
		token("an OpenAI key", url, 40, 255, "sk-proj-", "sk-svcacct-", "sk-admin-"),
		token("an Anthropic key", url, 40, 255, "sk-ant-"),
		token("an OpenRouter key", hex, 64, 64, "sk-or-v1-"),
		token("an API key", alnum, 32, 64, "sk-"),
		token("a Perplexity key", alnum, 48, 48, "pplx-"),
		token("a Groq key", alnum, 52, 52, "gsk_"),
		token("an xAI key", alnum, 70, 100, "xai-"),
		token("a Replicate token", alnum, 37, 40, "r8_"),
		token("a Hugging Face token", alnum, 30, 40, "hf_", "api_org_"),
		token("a LangSmith key", word, 40, 64, "lsv2_pt_", "lsv2_sk_"),
		token("a Pinecone key", word, 40, 80, "pcsk_"),
		token("an npm token", alnum, 36, 36, "npm_"),
		token("a PyPI token", url, 50, 1024, "pypi-AgE"),
		token("a RubyGems token", hex, 48, 48, "rubygems_"),
		token("a crates.io token", alnum, 32, 32, "cio"),
		token("a NuGet key", chars("a-z0-9"), 43, 43, "oy2"),
		token("a Clojars token", alnum, 60, 60, "CLOJARS_"),
		token("an Artifactory key", alnum, 69, 69, "AKCp"),
		token("an Artifactory token", alnum, 59, 59, "cmVmd"),
		token("a Docker token", url, 27, 40, "dckr_pat_", "dckr_oat_"),
		token("a Twilio key", hex, 32, 32, "SK"),
		token("a Brevo key", chars("a-zA-Z0-9-"), 81, 81, "xkeysib-"),
		token("a DigitalOcean token", hex, 64, 64, "dop_v1_", "doo_v1_", "dor_v1_"),
		token("a Heroku token", url, 58, 80, "HRKU-AA"),
		token("a Fly token", chars("a-zA-Z0-9+/=_,-"), 80, 4096, "fm2_", "fm1r_", "fm1a_"),
		token("a Fly token", url, 43, 43, "fo1_"),
		token("a Netlify token", alnum, 36, 40, "nfp_"),
		token("a Supabase token", hex, 40, 40, "sbp_"),
		token("a PlanetScale token", chars("a-zA-Z0-9_=.-"), 32, 64, "pscale_tkn_", "pscale_oauth_", "pscale_pw_"),
		token("a Databricks token", hex, 32, 32, "dapi"),
		token("a ClickHouse key", alnum, 38, 38, "4b1d"),
		token("a Shopify token", chars("a-fA-F0-9"), 32, 32, "shpat_", "shpss_", "shpca_", "shppa_"),
		token("a Vault token", url, 60, 255, "hvs.", "hvb."),
		token("a Doppler token", alnum, 40, 44, "dp.pt.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."),
		token("a 1Password token", base64, 250, 4096, "ops_eyJ"),
		token("a Pulumi token", hex, 40, 40, "pul-"),
		token("a Prefect token", alnum, 36, 36, "pnu_"),
		token("a Tailscale key", url, 20, 80, "tskey-"),
		token("a Linear key", alnum, 40, 40, "lin_api_"),
		token("a Linear token", hex, 64, 64, "lin_oauth_"),
		token("a Notion token", alnum, 40, 64, "ntn_"),
		token("a Notion token", alnum, 43, 43, "secret_"),
		token("a Figma token", url, 40, 60, "figd_"),
		token("a Contentful token", url, 43, 43, "CFPAT-"),
		token("a HubSpot token", chars("a-f0-9-"), 36, 36, "pat-na1-", "pat-na2-", "pat-eu1-"),
		token("a Typeform token", chars("a-zA-Z0-9_.=-"), 59, 60, "tfp_"),
		token("a Shippo token", hex, 40, 40, "shippo_live_"),
		token("a Duffel token", chars("a-zA-Z0-9_=-"), 43, 43, "duffel_live_"),
		token("an EasyPost key", alnum, 54, 54, "EZAK"),
		token("a ReadMe key", alnum, 70, 70, "rdme_"),
		token("a Postman key", chars("a-f0-9-"), 59, 59, "PMAK-"),
		token("a Sourcegraph token", word, 40, 57, "sgp_"),
		token("a Sourcegraph token", hex, 64, 64, "slk_"),
		token("a SonarQube token", hex, 40, 40, "squ_", "sqp_", "sqa_"),
		token("a CircleCI token", word, 50, 80, "CCIPAT_"),
		token("a Buildkite token", hex, 40, 40, "bkua_"),
		token("an Octopus key", chars("A-Z0-9"), 26, 32, "API-"),
		token("an Okta token", url, 40, 40, "SSWS 00"),
		token("an OpenShift token", url, 43, 43, "sha256~"),
		token("a Grafana token", word, 41, 41, "glsa_"),
		token("a Grafana token", chars("a-zA-Z0-9+/="), 32, 400, "glc_"),
		token("a Grafana key", chars("a-zA-Z0-9+/="), 70, 400, "eyJrIjoi"),
		token("a Sentry token", chars("a-zA-Z0-9+/=_"), 80, 512, "sntrys_"),
		token("a Sentry token", hex, 64, 64, "sntryu_"),
		token("a New Relic key", alnum, 27, 32, "NRAK-", "NRAA-"),
		token("a New Relic key", url, 32, 32, "NRII-", "NRIQ-"),
		token("an Adobe client secret", url, 32, 32, "p8e-"),
		token("a Scalingo token", url, 48, 48, "tk-us-"),
		token("a SettleMint token", alnum, 16, 16, "sm_aat_", "sm_pat_", "sm_sat_"),
		token("a Facebook token", alnum, 100, 300, "EAAM", "EAAC"),
		token("an age key", chars("A-Z0-9"), 58, 58, "AGE-SECRET-KEY-1"),
	}
	return slices.Concat(list, structured(), composed(), namedShapes())
}

// structured returns the shapes that are more than a prefix and a body.
func structured() []shape {
	return []shape{
		{what: "a private key", literals: []string{"-----BEGIN "}, find: findKeyBlock},
		{what: "a private key", literals: []string{"Private-Lines: "}, find: findPutty},
		{what: "a Telegram bot token", literals: []string{":AA"}, find: findTelegram},
		{what: "a JSON web token", literals: []string{"eyJ"}, find: findJWT},
		{what: "a URL with a password", literals: []string{"://"}, find: findURL},
		{what: "a Discord bot token", literals: []string{"MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"}, find: findDiscord},
		assignment("an AWS secret key", chars("a-zA-Z0-9+/"), 40, 40,
			"aws_secret_access_key", "AWS_SECRET_ACCESS_KEY", "secretAccessKey", "SecretAccessKey", "secret_access_key"),
		assignment("a Datadog key", chars("a-f0-9"), 32, 40, "DD_API_KEY", "DD_APP_KEY"),
		assignment("a Cloudflare token", chars("a-zA-Z0-9_-"), 37, 40, "CF_API_TOKEN", "CF_API_KEY"),
		assignment("an Azure key", chars("a-zA-Z0-9+/="), 44, 88, "AccountKey", "SharedAccessKey", "AZURE_STORAGE_KEY"),
		assignment("an Azure client secret", chars("a-zA-Z0-9_.~-"), 34, 44, "AZURE_CLIENT_SECRET", "ARM_CLIENT_SECRET"),
	}
}

// token returns a shape with one of the prefixes and a body of least to most
// bytes from a set. A longer run of such bytes does not match.
func token(what string, set *charset, least, most int, prefixes ...string) shape {
	return shape{what: what, literals: prefixes, find: func(text string, begin, end int) (int, int, bool) {
		if !startsWord(text, begin) {
			return 0, 0, false
		}
		to := set.run(text[:min(len(text), end+most+1)], end)
		if n := to - end; n < least || n > most || to < len(text) && isAlnum(text[to]) {
			return 0, 0, false
		}
		return begin, to, isRandom(text[end:to])
	}}
}

// assignment returns a shape without a form of its own, recognized by the name
// that it is assigned to: NAME=value, "name": "value" and the like. Only the
// value is the secret.
func assignment(what string, set *charset, least, most int, names ...string) shape {
	between := chars(" \t\"'=:>")
	return shape{what: what, literals: names, find: func(text string, _, end int) (int, int, bool) {
		from := between.run(text[:min(len(text), end+8)], end)
		if from == end {
			return 0, 0, false
		}
		to := set.run(text[:min(len(text), from+most+1)], from)
		if n := to - from; n < least || n > most {
			return 0, 0, false
		}
		return from, to, isRandom(text[from:to])
	}}
}
