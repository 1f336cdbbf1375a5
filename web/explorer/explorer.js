// Loads the description that the given token may see, and lets Swagger UI call it with that token.
"use strict";

const form = document.getElementById("sign-in");
const problem = document.getElementById("problem");

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  problem.textContent = "";
  const token = document.getElementById("token").value.trim();
  try {
    show(await description(token), token);
  } catch (error) {
    problem.textContent = error.message;
  }
});

async function description(token) {
  const reply = await fetch("/oi-api/openapi", { headers: { Authorization: `Bearer ${token}` }, cache: "no-store" });
  const body = await reply.json();
  if (!reply.ok) {
    throw new Error(`${body.detail} (${body.code}, request ${body.traceId})`);
  }
  return body;
}

function show(spec, token) {
  SwaggerUIBundle({
    spec,
    dom_id: "#explorer",
    deepLinking: false,
    validatorUrl: null,
    persistAuthorization: false,
    tryItOutEnabled: true,
    // The command that is shown to be copied does not hold the token.
    showMutatedRequest: false,
    displayRequestDuration: true,
    docExpansion: "list",
    // Only to where the page came from: a description cannot send the token elsewhere.
    requestInterceptor: (request) => {
      const target = new URL(request.url, window.location.href);
      if (target.origin !== window.location.origin) {
        throw new Error(`${target.origin} is not this service.`);
      }
      request.headers.Authorization = `Bearer ${token}`;
      return request;
    },
  });
}
