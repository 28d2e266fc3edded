// A program with the types that openapi-typescript makes of the schema; compiled, not run.
import createClient from "openapi-fetch";
import type { components, paths } from "./foretune";

type Job = components["schemas"]["JobOut"];
type State = components["schemas"]["JobStateEnum"];

const ENDED: readonly State[] = ["succeeded", "failed", "cancelled"];
const client = createClient<paths>({
  baseUrl: "http://localhost:8000",
  headers: { Authorization: "Bearer ft-..." },
});

function told<T>({ data, error }: { data?: T; error?: components["schemas"]["ErrorOut"] }): T {
  if (data === undefined) throw new Error(error ? `${error.error.code}: ${error.error.message}` : "nothing");
  return data;
}

export async function upload(rows: Blob): Promise<string> {
  const body = new FormData();
  body.set("file", rows, "rows.jsonl");
  return told(await client.POST("/api/files/", { body: { file: "" }, bodySerializer: () => body })).id;
}

export async function* files(limit: number): AsyncGenerator<components["schemas"]["FileOut"]> {
  let after: string | undefined;
  do {
    const page = told(await client.GET("/api/files/", { params: { query: { limit, after } } }));
    yield* page.data;
    after = page.next ?? undefined;
  } while (after !== undefined);
}

export async function train(training_file: string): Promise<Job> {
  const params = { tuning: "lora", max_steps: 2 } as const;
  const body = { model: "builtin/tiny-llama", training_file, params };
  let job = told(await client.POST("/api/jobs/", { body }));
  while (!ENDED.includes(job.state)) {
    const query = { wait_s: 30, until: "ended" } as const;
    job = told(await client.GET("/api/jobs/{job_id}/", { params: { path: { job_id: job.id }, query } }));
  }
  return job;
}

export async function adapter(job: Job): Promise<Blob> {
  const path = { job_id: job.id, path: "output/adapter_model.safetensors" };
  const asked = { params: { path }, parseAs: "blob" } as const;
  return told(await client.GET("/api/jobs/{job_id}/artifacts/{path}", asked));
}
