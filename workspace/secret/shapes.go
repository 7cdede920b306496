package secret

// shapes returns the forms of secrets that the guard knows. Issuers publish
// these facts. A new one needs a row in the test's table too.
func shapes() []shape {
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
		token("a GitHub token", alnum, 36, 255, "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
		token("a GitHub token", word, 60, 255, "github_pat_"),
		token("a GitLab token", url, 20, 255, "glpat-", "gldt-", "glrt-", "glptt-", "glagent-", "gloas-"),
		token("a Slack token", url, 24, 255, "xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xapp-"),
		token("a Slack webhook", chars("a-zA-Z0-9/"), 40, 120, "hooks.slack.com/services/"),
		token("a Discord webhook", chars("a-zA-Z0-9_/-"), 70, 120, "discord.com/api/webhooks/", "discordapp.com/api/webhooks/"),
		token("a Stripe key", alnum, 20, 255, "sk_live_", "rk_live_"),
		token("a Stripe webhook secret", base64, 32, 64, "whsec_"),
		token("a Google API key", url, 35, 35, "AIza"),
		token("a Google client secret", url, 24, 40, "GOCSPX-"),
		token("a Google access token", url, 60, 1024, "ya29."),
		token("an OpenAI key", url, 40, 255, "sk-proj-", "sk-svcacct-", "sk-admin-"),
		token("an Anthropic key", url, 40, 255, "sk-ant-"),
		token("an OpenRouter key", hex, 64, 64, "sk-or-v1-"),
		token("an API key", alnum, 32, 64, "sk-"),
		token("an npm token", alnum, 36, 36, "npm_"),
		token("a PyPI token", url, 50, 1024, "pypi-AgE"),
		token("a RubyGems token", hex, 48, 48, "rubygems_"),
		token("a Twilio key", hex, 32, 32, "SK"),
		token("a Hugging Face token", alnum, 30, 40, "hf_"),
		token("a DigitalOcean token", hex, 64, 64, "dop_v1_", "doo_v1_", "dor_v1_"),
		token("a Shopify token", chars("a-fA-F0-9"), 32, 32, "shpat_", "shpss_", "shpca_", "shppa_"),
		token("a Databricks token", hex, 32, 32, "dapi"),
		token("a Vault token", url, 60, 255, "hvs.", "hvb."),
		token("a Linear key", alnum, 40, 40, "lin_api_"),
		token("a Notion token", alnum, 40, 64, "ntn_"),
		token("a Postman key", chars("a-f0-9-"), 59, 59, "PMAK-"),
		token("a Groq key", alnum, 52, 52, "gsk_"),
		token("an xAI key", alnum, 70, 100, "xai-"),
		token("a Replicate token", alnum, 37, 40, "r8_"),
		token("a Grafana token", word, 41, 41, "glsa_"),
		token("a Sentry token", chars("a-zA-Z0-9+/=_"), 80, 512, "sntrys_"),
		token("a Supabase token", hex, 40, 40, "sbp_"),
		token("a Docker token", url, 27, 40, "dckr_pat_"),
		token("a Fly token", chars("a-zA-Z0-9+/=_,-"), 80, 4096, "fm2_"),
		token("an age key", chars("A-Z0-9"), 58, 58, "AGE-SECRET-KEY-1"),
	}
	return append(list, structured()...)
}

// structured returns the shapes that are more than a prefix and a body.
func structured() []shape {
	return []shape{
		{what: "a private key", literals: []string{"-----BEGIN "}, find: findKeyBlock},
		{what: "a private key", literals: []string{"Private-Lines: "}, find: findPutty},
		{what: "a SendGrid key", literals: []string{"SG."}, find: findSendGrid},
		{what: "a Telegram bot token", literals: []string{":AA"}, find: findTelegram},
		{what: "a JSON web token", literals: []string{"eyJ"}, find: findJWT},
		{what: "a URL with a password", literals: []string{"://"}, find: findURL},
		assignment("an AWS secret key", chars("a-zA-Z0-9+/"), 40, 40,
			"aws_secret_access_key", "AWS_SECRET_ACCESS_KEY", "secretAccessKey", "SecretAccessKey", "secret_access_key"),
		assignment("a Twilio token", chars("a-f0-9"), 32, 32, "twilio_auth_token", "TWILIO_AUTH_TOKEN", "twilioAuthToken"),
		assignment("a Datadog key", chars("a-f0-9"), 32, 40, "DD_API_KEY", "DATADOG_API_KEY", "DD_APP_KEY"),
		assignment("a Cloudflare token", chars("a-zA-Z0-9_-"), 37, 40, "CLOUDFLARE_API_TOKEN", "CLOUDFLARE_API_KEY", "CF_API_TOKEN"),
		assignment("a Heroku key", chars("a-f0-9-"), 36, 36, "HEROKU_API_KEY"),
		assignment("a Mailgun key", chars("a-f0-9-"), 36, 60, "MAILGUN_API_KEY", "mailgun_api_key"),
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
