const assert = require("node:assert");
const { escapeHTML } = require("./escape.js");

assert.strictEqual(escapeHTML("plain"), "plain");
assert.strictEqual(escapeHTML("<b> & <i>"), "&lt;b&gt; &amp; &lt;i&gt;");
assert.strictEqual(escapeHTML("a &lt; b"), "a &amp;lt; b");
