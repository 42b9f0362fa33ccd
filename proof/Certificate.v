(** The proof of docs/certificate.md, checked by Coq 8.16 with its standard library alone: `cargo xtask proof`.

    Probability is used through expectations only. An [Expectation] is a linear, monotone functional with E 1 = 1 on a space of integrable
    functions; every probability measure gives one. Independent draws are integrated one after another. "The event B of n independent
    draws has probability at most c" is [chance n B c]: the iterated upper expectations of its indicator are at most c. For a measurable B that says
    P(B) <= c, by Fubini's theorem. The horizon n is any number: a certificate ends after finitely many draws.

    Constants of the code have its names. A comment that begins "In the code:" quotes it. A test compares both with the source. *)
Require Import Reals Lra Psatz Lia List FunctionalExtensionality Classical_Prop.
Import ListNotations.
Open Scope R_scope.

(** * Constants of crates/pasta/src/certificate *)

Definition LEAST_COUNT := 20.
Definition LARGEST_SPREAD := 1 / 100.
Definition LARGEST_MEAN := 17 / 100.
Definition TRACKS := 3%nat.
Definition FIRST_SHARE := 8 / 10.
Definition NEXT_SHARE := 2 / 10.
Definition VARIANCE_SHARE := 2 / 10.
Definition LOOK_SHARE := 5 / 10.

(** * Expectations *)

Record Expectation (Omega : Type) := {
  L : (Omega -> R) -> Prop;               (* the integrable functions *)
  E : (Omega -> R) -> R;
  L_one : L (fun _ => 1);
  L_linear : forall a b f g, L f -> L g -> L (fun w => a * f w + b * g w);
  E_one : E (fun _ => 1) = 1;
  E_linear : forall a b f g, L f -> L g -> E (fun w => a * f w + b * g w) = a * E f + b * E g;
  E_monotone : forall f g, L f -> L g -> (forall w, f w <= g w) -> E f <= E g
}.
Arguments L {Omega}. Arguments E {Omega}. Arguments L_one {Omega}. Arguments L_linear {Omega}.
Arguments E_one {Omega}. Arguments E_linear {Omega}. Arguments E_monotone {Omega}.

Section Integrals.
  Context {Omega : Type} (P : Expectation Omega).

  (* f has an integral, and it is c *)
  Definition integral f c := L P f /\ E P f = c.

  Lemma integral_const c : integral (fun _ => c) c.
  Proof.
    replace (fun _ : Omega => c) with (fun w : Omega => c * (fun _ => 1) w + 0 * (fun _ => 1) w)
      by (apply functional_extensionality; intro; ring).
    split; [apply L_linear; apply L_one | rewrite E_linear by apply L_one; rewrite E_one; ring].
  Qed.
  Lemma integral_linear a b f g c d : integral f c -> integral g d -> integral (fun w => a * f w + b * g w) (a * c + b * d).
  Proof. intros [Hf <-] [Hg <-]. split; [apply L_linear; assumption | apply E_linear; assumption]. Qed.
  Lemma integral_plus f g c d : integral f c -> integral g d -> integral (fun w => f w + g w) (c + d).
  Proof.
    intros Hf Hg. pose proof (integral_linear 1 1 f g c d Hf Hg) as H.
    replace (fun w => f w + g w) with (fun w => 1 * f w + 1 * g w) by (apply functional_extensionality; intro; ring).
    replace (c + d) with (1 * c + 1 * d) by ring. exact H.
  Qed.
  Lemma integral_scale a f c : integral f c -> integral (fun w => a * f w) (a * c).
  Proof.
    intro Hf. pose proof (integral_linear a 0 f f c c Hf Hf) as H.
    replace (fun w => a * f w) with (fun w => a * f w + 0 * f w) by (apply functional_extensionality; intro; ring).
    replace (a * c) with (a * c + 0 * c) by ring. exact H.
  Qed.
  Lemma integral_eq f g c d : integral f c -> (forall w, g w = f w) -> d = c -> integral g d.
  Proof. intros H Hg ->. replace g with f by (apply functional_extensionality; intro; auto). exact H. Qed.

  (* the upper expectation of f is at most c *)
  Definition at_most f c := exists g, L P g /\ (forall w, f w <= g w) /\ E P g <= c.

  Lemma at_most_integral f c d : integral f c -> c <= d -> at_most f d.
  Proof. intros [H <-] Hd. exists f. repeat split; [assumption | intro; lra | assumption]. Qed.
  Lemma at_most_weaken f g c d : at_most g c -> (forall w, f w <= g w) -> c <= d -> at_most f d.
  Proof. intros [h [Hh [Hg Hc]]] Hf Hd. exists h. repeat split; [assumption | intro w; eapply Rle_trans; eauto | lra]. Qed.
  Lemma at_most_scale a f c : 0 <= a -> at_most f c -> at_most (fun w => a * f w) (a * c).
  Proof.
    intros Ha [g [Hg [Hf Hc]]]. destruct (integral_scale a g (E P g) (conj Hg eq_refl)) as [H1 H2].
    exists (fun w => a * g w). repeat split; [assumption | intro w; apply Rmult_le_compat_l; auto | rewrite H2; apply Rmult_le_compat_l; auto].
  Qed.
  Lemma at_most_plus f g c d : at_most f c -> at_most g d -> at_most (fun w => f w + g w) (c + d).
  Proof.
    intros [f' [Hf [Lf Cf]]] [g' [Hg [Lg Cg]]].
    destruct (integral_plus f' g' _ _ (conj Hf eq_refl) (conj Hg eq_refl)) as [H1 H2].
    exists (fun w => f' w + g' w). repeat split; [assumption | intro w; specialize (Lf w); specialize (Lg w); lra | lra].
  Qed.
  Lemma at_most_const c : at_most (fun _ => c) c.
  Proof. apply at_most_integral with c; [apply integral_const | lra]. Qed.

  (** ** n independent draws *)
  Fixpoint at_most_n (n : nat) (F : list Omega -> R) (c : R) : Prop :=
    match n with
    | O => F [] <= c
    | S n => exists G, (forall w, at_most_n n (fun l => F (w :: l)) (G w)) /\ at_most G c
    end.

  Lemma at_most_n_weaken n : forall F G c d, at_most_n n G c -> (forall l, length l = n -> F l <= G l) -> c <= d -> at_most_n n F d.
  Proof.
    induction n as [|n IH]; simpl; intros F G c d H HF Hd.
    - specialize (HF [] eq_refl). lra.
    - destruct H as [H [H1 H2]]. exists H. split.
      + intro w. apply IH with (fun l => G (w :: l)) (H w); [apply H1 | intros l Hl; apply HF; simpl; lia | lra].
      + apply at_most_weaken with H c; [assumption | intro; lra | assumption].
  Qed.
  Lemma at_most_n_scale n : forall a F c, 0 <= a -> at_most_n n F c -> at_most_n n (fun l => a * F l) (a * c).
  Proof.
    induction n as [|n IH]; simpl; intros a F c Ha H.
    - apply Rmult_le_compat_l; assumption.
    - destruct H as [G [H1 H2]]. exists (fun w => a * G w). split; [intro w; apply IH; auto | apply at_most_scale; assumption].
  Qed.
  Lemma at_most_n_plus n : forall F G c d, at_most_n n F c -> at_most_n n G d -> at_most_n n (fun l => F l + G l) (c + d).
  Proof.
    induction n as [|n IH]; simpl; intros F G c d HF HG.
    - lra.
    - destruct HF as [F' [F1 F2]], HG as [G' [G1 G2]]. exists (fun w => F' w + G' w).
      split; [intro w; apply IH; auto | apply at_most_plus; assumption].
  Qed.
  Lemma at_most_n_const n c : at_most_n n (fun _ => c) c.
  Proof. induction n as [|n IH]; simpl; [lra | exists (fun _ => c); split; [intro; exact IH | apply at_most_const]]. Qed.

  (** The n draws together are a space like that of one. *)
  Fixpoint En (n : nat) (F : list Omega -> R) : R :=
    match n with O => F [] | S n => E P (fun w => En n (fun l => F (w :: l))) end.
  Fixpoint Ln (n : nat) (F : list Omega -> R) : Prop :=
    match n with O => True | S n => (forall w, Ln n (fun l => F (w :: l))) /\ L P (fun w => En n (fun l => F (w :: l))) end.
  Lemma Ln_one n : Ln n (fun _ => 1) /\ En n (fun _ => 1) = 1.
  Proof.
    induction n as [|n [IH1 IH2]]; simpl; [auto|]. rewrite IH2. split; [split; [auto | apply L_one] | apply E_one].
  Qed.
  Lemma Ln_linear n : forall a b F G, Ln n F -> Ln n G ->
    Ln n (fun l => a * F l + b * G l) /\ En n (fun l => a * F l + b * G l) = a * En n F + b * En n G.
  Proof.
    induction n as [|n IH]; simpl; intros a b F G HF HG; [auto|]. destruct HF as [F1 F2], HG as [G1 G2].
    assert (H : (fun w => En n (fun l => a * F (w :: l) + b * G (w :: l)))
              = (fun w => a * En n (fun l => F (w :: l)) + b * En n (fun l => G (w :: l)))).
    { apply functional_extensionality. intro w. apply (IH a b (fun l => F (w :: l)) (fun l => G (w :: l))); auto. }
    rewrite H. split; [split; [intro w; apply IH; auto | apply L_linear; assumption] | apply E_linear; assumption].
  Qed.
  Lemma En_monotone n : forall F G, Ln n F -> Ln n G -> (forall l, F l <= G l) -> En n F <= En n G.
  Proof.
    induction n as [|n IH]; simpl; intros F G HF HG H; [apply H|]. destruct HF as [F1 F2], HG as [G1 G2].
    apply E_monotone; auto.
  Qed.
  Definition draws (n : nat) : Expectation (list Omega) := {|
    L := Ln n; E := En n; L_one := proj1 (Ln_one n); E_one := proj2 (Ln_one n);
    L_linear := fun a b F G HF HG => proj1 (Ln_linear n a b F G HF HG);
    E_linear := fun a b F G HF HG => proj2 (Ln_linear n a b F G HF HG);
    E_monotone := En_monotone n |}.
End Integrals.

(** * Probability *)

(* the indicator of an event *)
Definition ind (A : Prop) : R := if ClassicalDedekindReals.sig_not_dec A then 1 else 0.
Lemma ind_true (A : Prop) : A -> ind A = 1.
Proof. intro H. unfold ind. destruct (ClassicalDedekindReals.sig_not_dec A); [reflexivity | contradiction]. Qed.
Lemma ind_false (A : Prop) : ~ A -> ind A = 0.
Proof. intro H. unfold ind. destruct (ClassicalDedekindReals.sig_not_dec A); [contradiction | reflexivity]. Qed.
Lemma ind_range (A : Prop) : 0 <= ind A <= 1.
Proof. unfold ind. destruct (ClassicalDedekindReals.sig_not_dec A); lra. Qed.

(* the event B of n independent draws has probability at most c *)
Definition chance {Omega} (P : Expectation Omega) n (B : list Omega -> Prop) c := at_most_n P n (fun l => ind (B l)) c.

Section Chance.
  Context {Omega : Type} (P : Expectation Omega).
  Lemma chance_weaken n (A B : list Omega -> Prop) c d : chance P n B c -> (forall l, length l = n -> A l -> B l) -> c <= d -> chance P n A d.
  Proof.
    intros H HA Hd. apply at_most_n_weaken with (fun l => ind (B l)) c; [assumption | | assumption].
    intros l Hl. destruct (classic (A l)) as [HAl|HAl].
    - rewrite (ind_true (B l)) by auto. apply ind_range.
    - rewrite (ind_false (A l)) by assumption. apply ind_range.
  Qed.
  Lemma chance_or n (A B : list Omega -> Prop) c d : chance P n A c -> chance P n B d -> chance P n (fun l => A l \/ B l) (c + d).
  Proof.
    intros HA HB. apply at_most_n_weaken with (fun l => ind (A l) + ind (B l)) (c + d); [apply at_most_n_plus; assumption | | lra].
    intros l _. pose proof (ind_range (A l)). pose proof (ind_range (B l)).
    destruct (classic (A l)) as [H1|H1]; [rewrite (ind_true (A l)) by auto; pose proof (ind_range (A l \/ B l)); lra|].
    destruct (classic (B l)) as [H2|H2]; [rewrite (ind_true (B l)) by auto; pose proof (ind_range (A l \/ B l)); lra|].
    rewrite (ind_false (A l \/ B l)) by tauto. lra.
  Qed.
  Lemma chance_never n (A : list Omega -> Prop) : (forall l, length l = n -> ~ A l) -> chance P n A 0.
  Proof.
    intro H. apply at_most_n_weaken with (fun _ => 0) 0; [apply at_most_n_const | | lra].
    intros l Hl. rewrite ind_false; [lra | auto].
  Qed.

  (* what is known of the first n of N draws *)
  Lemma at_most_prefix n : forall (F : list Omega -> R) c N, (n <= N)%nat -> at_most_n P n F c -> at_most_n P N (fun l => F (firstn n l)) c.
  Proof.
    induction n as [|n IH]; intros F c N HN H.
    - simpl in *. apply at_most_n_weaken with (fun _ => F []) (F []); [apply at_most_n_const | intros; lra | exact H].
    - destruct N as [|N]; [lia|]. simpl in *. destruct H as [G [H1 H2]]. exists G. split; [|assumption].
      intro w. apply (IH (fun l => F (w :: l)) (G w) N); [lia | apply H1].
  Qed.
  Lemma chance_prefix n (B : list Omega -> Prop) c N : (n <= N)%nat -> chance P n B c -> chance P N (fun l => B (firstn n l)) c.
  Proof. intros HN H. exact (at_most_prefix n (fun l => ind (B l)) c N HN H). Qed.
  (* a finite union *)
  Fixpoint total (f : nat -> R) (n : nat) : R := match n with O => 0 | S n => total f n + f n end.
  Lemma chance_any n (A : nat -> list Omega -> Prop) c k :
    (forall i, (i < k)%nat -> chance P n (A i) (c i)) -> chance P n (fun l => exists i, (i < k)%nat /\ A i l) (total c k).
  Proof.
    induction k as [|k IH]; intro H; simpl.
    - apply chance_never. intros l _ [i [Hi _]]. lia.
    - apply chance_weaken with (fun l => (exists i, (i < k)%nat /\ A i l) \/ A k l) (total c k + c k).
      + apply chance_or; [apply IH; intros; apply H; lia | apply H; lia].
      + intros l _ [i [Hi HA]]. destruct (Nat.eq_dec i k) as [->|Hne]; [right; assumption | left; exists i; split; [lia | assumption]].
      + lra.
  Qed.
End Chance.

(** * Ville's inequality, and all k at once *)

Section Ville.
  Context {Omega : Type} (P : Expectation Omega).

  (* "the product of the factors, begun at c, reaches the height h", as 0 or 1 *)
  Fixpoint hit (M : Omega -> R) (h c : R) (l : list Omega) : R :=
    if Rle_dec h c then 1 else match l with [] => 0 | w :: l => hit M h (c * M w) l end.
  Lemma hit_range M h l : forall c, 0 <= hit M h c l <= 1.
  Proof. induction l as [|w l IH]; intro c; simpl; destruct (Rle_dec h c); try lra; apply IH. Qed.

  Theorem ville M h : 0 < h -> (forall w, 0 <= M w) -> at_most P M 1 ->
    forall n c, 0 <= c -> at_most_n P n (hit M h c) (c / h).
  Proof.
    intros Hh HM H1 n. induction n as [|n IH]; intros c Hc.
    - simpl. destruct (Rle_dec h c) as [H|H].
      + apply Rmult_le_reg_r with h; [assumption|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra.
      + apply Rmult_le_pos; [assumption | left; apply Rinv_0_lt_compat; assumption].
    - destruct (Rle_dec h c) as [H|H].
      + apply at_most_n_weaken with (fun _ => 1) 1; [apply at_most_n_const | intros; apply hit_range |].
        apply Rmult_le_reg_r with h; [assumption|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra.
      + simpl. exists (fun w => c / h * M w). split.
        * intro w. apply at_most_n_weaken with (hit M h (c * M w)) (c * M w / h).
          -- apply IH. apply Rmult_le_pos; auto.
          -- intros l _. destruct (Rle_dec h c); [contradiction | lra].
          -- unfold Rdiv. lra.
        * apply at_most_weaken with (fun w => c / h * M w) (c / h * 1); [|intro; lra | lra].
          apply at_most_scale; [|assumption]. apply Rmult_le_pos; [assumption | left; apply Rinv_0_lt_compat; assumption].
  Qed.

  Definition sum (Z : Omega -> R) (l : list Omega) := fold_right (fun w t => Z w + t) 0 l.

  Lemma hit_product (Z : Omega -> R) rho h l : forall c k, (k <= length l)%nat ->
    h <= c * exp (INR k * rho - sum Z (firstn k l)) -> hit (fun w => exp (rho - Z w)) h c l = 1.
  Proof.
    induction l as [|w l IH]; intros c k Hk H; simpl.
    - destruct k; [|simpl in Hk; lia]. simpl in H. destruct (Rle_dec h c) as [|N]; [reflexivity|].
      exfalso. apply N. replace (0 * rho - 0) with 0 in H by ring. rewrite exp_0 in H. lra.
    - destruct (Rle_dec h c) as [|N]; [reflexivity|]. destruct k as [|k].
      + exfalso. apply N. simpl in H. replace (0 * rho - 0) with 0 in H by ring. rewrite exp_0 in H. lra.
      + apply IH with k; [simpl in Hk; lia|].
        rewrite S_INR in H. simpl in H. rewrite Rmult_assoc, <- exp_plus.
        replace (rho - Z w + (INR k * rho - sum Z (firstn k l))) with ((INR k + 1) * rho - (Z w + sum Z (firstn k l))) by ring.
        exact H.
  Qed.

  (** If E exp(rho - Z) <= 1, then with probability at least 1 - exp(-ell), for all k at once, Z_1 + .. + Z_k > k rho - ell. *)
  Theorem all_k_at_once Z rho ell n : at_most P (fun w => exp (rho - Z w)) 1 ->
    chance P n (fun l => exists k, (k <= n)%nat /\ sum Z (firstn k l) <= INR k * rho - ell) (exp (- ell)).
  Proof.
    intro H. apply at_most_n_weaken with (hit (fun w => exp (rho - Z w)) (exp ell) 1) (1 / exp ell).
    - apply ville; [apply exp_pos | intro; left; apply exp_pos | assumption | lra].
    - intros l Hl. destruct (classic (exists k, (k <= n)%nat /\ sum Z (firstn k l) <= INR k * rho - ell)) as [HB|HB].
      + rewrite ind_true by assumption. destruct HB as [k [Hk Hs]]. rewrite (hit_product Z rho _ l 1 k); [lra | lia |].
        rewrite Rmult_1_l. assert (Hx : ell <= INR k * rho - sum Z (firstn k l)) by lra.
        destruct Hx as [Hx|Hx]; [left; apply exp_increasing; assumption | right; rewrite <- Hx; reflexivity].
      + rewrite ind_false by assumption. apply hit_range.
    - rewrite exp_Ropp. unfold Rdiv. lra.
  Qed.
End Ville.

(** * Vectors of d coordinates *)

Definition Vec := nat -> R.
Fixpoint dot (d : nat) (x y : Vec) : R := match d with O => 0 | S d => dot d x y + x d * y d end.
Definition norm d x := sqrt (dot d x x).
Definition add (x y : Vec) : Vec := fun i => x i + y i.
Definition scale (a : R) (x : Vec) : Vec := fun i => a * x i.
Definition sub (x y : Vec) : Vec := fun i => x i - y i.
Definition zero : Vec := fun _ => 0.

Lemma dot_add d x y z : dot d (add x y) z = dot d x z + dot d y z.
Proof. induction d as [|d IH]; simpl; [ring | rewrite IH; unfold add; ring]. Qed.
Lemma dot_scale d a x z : dot d (scale a x) z = a * dot d x z.
Proof. induction d as [|d IH]; simpl; [ring | rewrite IH; unfold scale; ring]. Qed.
Lemma dot_sub d x y z : dot d (sub x y) z = dot d x z - dot d y z.
Proof. induction d as [|d IH]; simpl; [ring | rewrite IH; unfold sub; ring]. Qed.
Lemma dot_zero d z : dot d zero z = 0.
Proof. induction d as [|d IH]; simpl; [ring | rewrite IH; unfold zero; ring]. Qed.
Lemma dot_comm d x y : dot d x y = dot d y x.
Proof. induction d as [|d IH]; simpl; [ring | rewrite IH; ring]. Qed.
Lemma dot_nonneg d x : 0 <= dot d x x.
Proof. induction d as [|d IH]; simpl; [lra | nra]. Qed.
Lemma norm_nonneg d x : 0 <= norm d x.
Proof. apply sqrt_pos. Qed.
Lemma norm_square d x : norm d x * norm d x = dot d x x.
Proof. apply sqrt_sqrt, dot_nonneg. Qed.
Lemma norm_scale d a x : 0 <= a -> norm d (scale a x) = a * norm d x.
Proof.
  intro Ha. unfold norm. rewrite dot_scale, dot_comm, dot_scale, <- Rmult_assoc.
  rewrite sqrt_mult_alt by nra. rewrite sqrt_square by assumption. reflexivity.
Qed.
Lemma cauchy_schwarz d x y : - (norm d x * norm d y) <= dot d x y <= norm d x * norm d y.
Proof.
  assert (H : dot d x y * dot d x y <= dot d x x * dot d y y).
  { induction d as [|d IH]; simpl; [lra|].
    pose proof (dot_nonneg d x) as Hp. pose proof (dot_nonneg d y) as Hq.
    pose proof (sqrt_sqrt _ Hp) as Sp. pose proof (sqrt_sqrt _ Hq) as Sq.
    pose proof (sqrt_pos (dot d x x)) as Pp. pose proof (sqrt_pos (dot d y y)) as Pq.
    set (p := sqrt (dot d x x)) in *. set (q := sqrt (dot d y y)) in *.
    set (A := dot d x y) in *. rewrite <- Sp, <- Sq in *. set (a := x d). set (b := y d).
    assert (HA : Rabs A <= p * q).
    { apply Rsqr_incr_0_var; [|nra]. rewrite <- Rsqr_abs. unfold Rsqr. nra. }
    assert (H2 : 2 * (A * (a * b)) <= p * p * (b * b) + q * q * (a * a)).
    { apply Rle_trans with (2 * (Rabs A * Rabs (a * b))).
      - rewrite <- Rabs_mult. pose proof (Rle_abs (A * (a * b))). lra.
      - apply Rle_trans with (2 * (p * q * Rabs (a * b))).
        + pose proof (Rabs_pos (a * b)). nra.
        + rewrite Rabs_mult. pose proof (pow2_ge_0 (p * Rabs b - q * Rabs a)) as S.
          assert (Rabs a * Rabs a = a * a) by (rewrite <- Rabs_mult; apply Rabs_right; nra).
          assert (Rabs b * Rabs b = b * b) by (rewrite <- Rabs_mult; apply Rabs_right; nra). nra. }
    nra. }
  rewrite <- !norm_square in H. pose proof (norm_nonneg d x). pose proof (norm_nonneg d y).
  assert (Rabs (dot d x y) <= norm d x * norm d y).
  { apply Rsqr_incr_0_var; [|nra]. rewrite <- Rsqr_abs. unfold Rsqr. nra. }
  split; [pose proof (Rle_abs (- dot d x y)); rewrite Rabs_Ropp in *; lra | pose proof (Rle_abs (dot d x y)); lra].
Qed.

(** * The exponential inequality for the clipped length *)

(* In the code: libm::log1p(t + 0.5 * t * t) / t *)
Definition psi (t : R) := ln (1 + t + t * t / 2).

Lemma exp_psi t : 0 <= t -> exp (psi t) = 1 + t + t * t / 2.
Proof. intro H. unfold psi. apply exp_ln. nra. Qed.
Lemma exp_psi_neg t : 0 <= t -> exp (- psi t) <= 1 - t + t * t / 2.
Proof.
  intro H. rewrite exp_Ropp, exp_psi by assumption.
  apply Rmult_le_reg_l with (1 + t + t * t / 2); [nra|].
  rewrite Rinv_r by nra. nra.
Qed.
Lemma psi_nonneg t : 0 <= t -> 0 <= psi t.
Proof. intro H. unfold psi. rewrite <- ln_1. destruct H as [H|<-]; [left; apply ln_increasing; nra | right; f_equal; lra]. Qed.
Lemma psi_monotone t t' : 0 <= t <= t' -> psi t <= psi t'.
Proof. intros [H [H'|<-]]; [left; unfold psi; apply ln_increasing; nra | right; reflexivity]. Qed.

Lemma exp_tangent x m : exp m * (1 + (x - m)) <= exp x.
Proof.
  replace x with (m + (x - m)) at 2 by ring. rewrite exp_plus.
  apply Rmult_le_compat_l; [left; apply exp_pos | apply exp_ineq1_le].
Qed.
Lemma exp_monotone x y : x <= y -> exp x <= exp y.
Proof. intros [H| ->]; [left; apply exp_increasing; assumption | right; reflexivity]. Qed.

(** y is the component of X in a fixed direction, r = |X|: exp(-s Y) <= 1 - s y + s^2 r^2/2, where s Y = y psi(s r)/r. *)
Theorem exponential_inequality s r y : 0 < s -> 0 < r -> - r <= y <= r ->
  exp (- (y * psi (s * r) / r)) <= 1 - s * y + s * s * (r * r) / 2.
Proof.
  intros Hs Hr Hy. set (t := s * r). assert (Ht : 0 <= t) by (unfold t; nra).
  set (p := (r - y) / (2 * r)). set (q := (r + y) / (2 * r)).
  assert (Hp : 0 <= p) by (unfold p; apply Rmult_le_pos; [lra | left; apply Rinv_0_lt_compat; lra]).
  assert (Hq : 0 <= q) by (unfold q; apply Rmult_le_pos; [lra | left; apply Rinv_0_lt_compat; lra]).
  assert (Hpq : p + q = 1) by (unfold p, q; field; lra).
  assert (Hy2 : y = r * (q - p)) by (unfold p, q; field; lra).
  set (m := - (y * psi t / r)).
  assert (Hm : m = (p - q) * psi t) by (unfold m; rewrite Hy2; field; lra).
  pose proof (exp_tangent (psi t) m) as T1. pose proof (exp_tangent (- psi t) m) as T2.
  rewrite (exp_psi t Ht) in T1. pose proof (exp_psi_neg t Ht) as T3.
  assert (S1 : p * (exp m * (1 + (psi t - m))) <= p * (1 + t + t * t / 2)) by (apply Rmult_le_compat_l; assumption).
  assert (S2 : q * (exp m * (1 + (- psi t - m))) <= q * (1 - t + t * t / 2)) by (apply Rmult_le_compat_l; [assumption | lra]).
  assert (S3 : p * (exp m * (1 + (psi t - m))) + q * (exp m * (1 + (- psi t - m))) = exp m).
  { replace q with (1 - p) in * by lra. rewrite Hm. ring_simplify. nra. }
  assert (S4 : exp m <= p * (1 + t + t * t / 2) + q * (1 - t + t * t / 2)) by lra.
  replace (1 - s * y + s * s * (r * r) / 2) with (p * (1 + t + t * t / 2) + q * (1 - t + t * t / 2)); [exact S4|].
  unfold t. rewrite Hy2. replace q with (1 - p) by lra. ring_simplify. nra.
Qed.

(** * Numbers of the second case *)

Lemma exp_times n x : exp (INR n * x) = exp x ^ n.
Proof.
  induction n as [|n IH]; [simpl; rewrite Rmult_0_l; apply exp_0|].
  rewrite S_INR, Rmult_plus_distr_r, Rmult_1_l, exp_plus, IH. simpl. ring.
Qed.
Lemma pow_le_inv x y n : 0 <= y -> x ^ S n <= y ^ S n -> x <= y.
Proof.
  intros Hy H. destruct (Rle_lt_dec x y) as [|N]; [assumption|].
  assert (y ^ S n < x ^ S n); [|lra]. clear H. induction n as [|n IH]; [simpl; lra|].
  change (y * y ^ S n < x * x ^ S n). pose proof (pow_le y (S n) Hy). apply Rle_lt_trans with (y * x ^ S n); [nra|].
  apply Rmult_lt_compat_r; lra.
Qed.

(* sqrt 3/2 > 84/97 *)
Lemma clipped_far : exp (- (84 / 97 * psi (1 / 2))) <= 6568 / 10000.
Proof.
  apply pow_le_inv with 96%nat; [lra|]. rewrite <- exp_times.
  replace (INR 97 * - (84 / 97 * psi (1 / 2))) with (INR 84 * - psi (1 / 2)) by (simpl; field).
  rewrite exp_times, exp_Ropp, exp_psi by lra.
  replace (/ (1 + 1 / 2 + 1 / 2 * (1 / 2) / 2)) with (8 / 13) by field. lra.
Qed.
Lemma exp_22 : 8018 / 10000 <= exp (- (22 / 100)).
Proof.
  replace (- (22 / 100)) with (INR 64 * (- (22 / 6400))) by (simpl; field). rewrite exp_times.
  apply Rle_trans with ((1 - 22 / 6400) ^ 64); [lra|]. apply pow_incr. split; [lra|].
  pose proof (exp_ineq1_le (- (22 / 6400))). lra.
Qed.

(** One draw far from zero: a = |g| > 1/s, D2 = |X - g|^2. *)
Lemma far_sample s r y a D2 : 0 < s -> 0 <= r -> - r <= y <= r -> 1 < s * a -> D2 = r * r - 2 * a * y + a * a ->
  exp (- (y * psi (s * r) / r)) <= 6568 / 10000 + 29 / 2 * (s * s * D2).
Proof.
  intros Hs Hr Hy Ha HD. assert (Ha0 : 0 < a) by nra.
  assert (HD0 : (r - a) * (r - a) <= D2) by nra.
  assert (HD00 : 0 <= D2) by (apply Rle_trans with (1 := Rle_0_sqr (r - a)); exact HD0).
  destruct (Rle_lt_dec D2 (a / 2 * (a / 2))) as [H|H].
  - assert (Hra : a / 2 <= r) by nra. assert (Hr0 : 0 < r) by lra.
    assert (Hyr : 84 / 97 * r <= y).
    { assert (K : 2 * a * (84 / 97 * r) <= r * r + 3 / 4 * (a * a)) by (pose proof (pow2_ge_0 (r - 84 / 97 * a)); nra).
      assert (K2 : 2 * a * (84 / 97 * r) <= 2 * a * y) by lra. nra. }
    apply Rle_trans with (exp (- (84 / 97 * psi (1 / 2)))).
    + apply exp_monotone. apply Ropp_le_contravar.
      assert (Hpsi : psi (1 / 2) <= psi (s * r)) by (apply psi_monotone; split; nra).
      pose proof (psi_nonneg (1 / 2) ltac:(lra)).
      replace (y * psi (s * r) / r) with (y / r * psi (s * r)) by (field; lra).
      assert (84 / 97 <= y / r) by (apply Rmult_le_reg_r with r; [assumption | unfold Rdiv at 2; rewrite Rmult_assoc, Rinv_l; lra]).
      nra.
    + pose proof clipped_far. assert (0 <= s * s * D2) by (apply Rmult_le_pos; [nra | assumption]). lra.
  - set (D := sqrt D2). assert (HD2 : D * D = D2) by (apply sqrt_sqrt; assumption). assert (HDp : 0 <= D) by apply sqrt_pos.
    assert (HDa : a / 2 < D) by nra. assert (HrD : r <= 3 * D) by nra.
    assert (HsD : 1 / 2 < s * D) by nra.
    apply Rle_trans with (1 + s * r + s * s * (r * r) / 2).
    + destruct Hr as [Hr| <-].
      * pose proof (exponential_inequality s r y Hs Hr Hy). nra.
      * unfold Rdiv. rewrite Rinv_0, Rmult_0_r, Ropp_0, exp_0. nra.
    + rewrite <- HD2. replace (s * s * (D * D)) with ((s * D) * (s * D)) by ring.
      assert (Hsr : 0 <= s * r <= 3 * (s * D)) by nra. replace (s * s * (r * r)) with ((s * r) * (s * r)) by ring.
      set (z := s * D) in *. set (t := s * r) in *. assert (t * t <= 9 * (z * z)) by nra. nra.
Qed.

(** * The theorem *)

(* m is the length of the mean of k clipped vectors.
   In the code: let share_of_noise = (0.5 * (s * v).next_up()).next_up();
   In the code: let share_of_chance = (log / (s * k).next_down()).next_up();
   In the code: let b = ((mean + share_of_noise).next_up() + share_of_chance).next_up(); *)
Definition b_of s v ell k m := m + s * v / 2 + ell / (s * INR k).
(* In the code: let root = (1.0 - (2.0 * s * b).next_up()).next_down().sqrt().next_down();
   In the code: Some((2.0 * b / (1.0 + root).next_down()).next_up()) *)
Definition U_of s v ell k m := let b := b_of s v ell k m in 2 * b / (1 + sqrt (1 - 2 * s * b)).
(* The conditions under which the code states it.
   In the code: let spread = ((s * s).next_up() * v).next_up();
   In the code: k >= (LEAST_COUNT * log).next_up()
   In the code: spread <= LARGEST_SPREAD.next_down()
   In the code: (s * mean).next_up() <= LARGEST_MEAN.next_down() *)
Definition stated s v ell k m := LEAST_COUNT * ell <= INR k /\ s * s * v <= LARGEST_SPREAD /\ m <= LARGEST_MEAN / s.

(** The root: where the conditions hold, a - s a^2/2 <= b and a <= 1/s imply a <= U, and U is the smaller root. *)
Lemma b_small s v ell k m : 0 < s -> 0 < ell -> stated s v ell k m -> s * b_of s v ell k m <= 225 / 1000.
Proof.
  intros Hs He [Hk [Hv Hm]]. unfold LEAST_COUNT, LARGEST_SPREAD, LARGEST_MEAN in *.
  assert (Hk0 : 0 < INR k) by nra. unfold b_of.
  replace (s * (m + s * v / 2 + ell / (s * INR k))) with (s * m + s * s * v / 2 + ell / INR k) by (field; split; lra).
  assert (s * m <= 17 / 100).
  { replace (17 / 100) with (s * (17 / 100 / s)) by (field; lra). apply Rmult_le_compat_l; lra. }
  assert (ell / INR k <= 1 / 20).
  { apply Rmult_le_reg_r with (INR k); [assumption|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra. }
  lra.
Qed.
Theorem smaller_root s b : 0 < s -> 0 <= b -> s * b <= 1 / 2 ->
  let U := 2 * b / (1 + sqrt (1 - 2 * s * b)) in
  U - s * (U * U) / 2 = b /\ U <= 1 / s /\ (forall a, 0 <= a <= 1 / s -> a - s * (a * a) / 2 <= b -> a <= U).
Proof.
  intros Hs Hb Hsb U. set (q := sqrt (1 - 2 * s * b)) in *.
  assert (Hq : 0 <= q) by apply sqrt_pos. assert (Hqq : q * q = 1 - 2 * s * b) by (apply sqrt_sqrt; lra).
  assert (HU : s * U = 1 - q).
  { unfold U. apply Rmult_eq_reg_r with (1 + q); [|lra]. transitivity (2 * s * b); [field; lra | nra]. }
  assert (Hroot : U - s * (U * U) / 2 = b).
  { apply Rmult_eq_reg_l with s; [|lra]. replace (s * (U - s * (U * U) / 2)) with (s * U - (s * U) * (s * U) / 2) by field. rewrite HU. nra. }
  assert (HU1 : U <= 1 / s).
  { apply Rmult_le_reg_l with s; [assumption|]. rewrite HU. replace (s * (1 / s)) with 1 by (field; lra). lra. }
  repeat split; [assumption | assumption|]. intros a [Ha0 Ha1] Ha.
  destruct (Rle_lt_dec a U) as [|N]; [assumption|]. exfalso.
  assert (Hs1 : s * a <= 1) by (replace 1 with (s * (1 / s)) by (field; lra); apply Rmult_le_compat_l; lra).
  (* a - U > 0 and s (a + U)/2 < 1 *)
  assert (s * U < s * a) by (apply Rmult_lt_compat_l; assumption).
  assert (K : (a - s * (a * a) / 2) - (U - s * (U * U) / 2) = (a - U) * (1 - s * (a + U) / 2)) by field.
  assert (0 < (a - U) * (1 - s * (a + U) / 2)) by (apply Rmult_lt_0_compat; nra). lra.
Qed.

(* the direction of g *)
Definition direction d g := scale (/ norm d g) g.
Lemma direction_unit d g : 0 < norm d g -> norm d (direction d g) = 1.
Proof. intro H. unfold direction. rewrite norm_scale; [field; lra | left; apply Rinv_0_lt_compat; assumption]. Qed.
Lemma along_direction d g x : dot d x (direction d g) = dot d x g / norm d g.
Proof. unfold direction. rewrite dot_comm, dot_scale, dot_comm. unfold Rdiv. ring. Qed.
Lemma g_along d g : 0 < norm d g -> dot d g (direction d g) = norm d g.
Proof. intro H. rewrite along_direction, <- norm_square. field. lra. Qed.

Section Factors.
  Context {Omega : Type} (P : Expectation Omega) (d : nat).
  (* X is one of the vectors X_1, X_2, .., with mean g; E |X - g|^2 <= v. *)
  Variables (X : Omega -> Vec) (g : Vec) (v : R).
  Hypothesis mean_is_g : forall i, (i < d)%nat -> integral P (fun w => X w i) (g i).
  Hypothesis variance_at_most_v : exists v', v' <= v /\ integral P (fun w => dot d (sub (X w) g) (sub (X w) g)) v'.

  Lemma integral_dot (y : Vec) : integral P (fun w => dot d (X w) y) (dot d g y).
  Proof.
    clear variance_at_most_v. induction d as [|n IH]; simpl.
    - apply integral_const.
    - apply integral_plus; [apply IH; intros; apply mean_is_g; lia|].
      apply integral_eq with (fun w => y n * X w n) (y n * g n); [apply integral_scale, mean_is_g; lia | intro; ring | ring].
  Qed.

  Lemma second_moment : exists v', v' <= v /\ integral P (fun w => dot d (X w) (X w)) (v' + dot d g g).
  Proof.
    destruct variance_at_most_v as [v' [Hv H]]. exists v'. split; [assumption|].
    apply integral_eq with (fun w => 1 * dot d (sub (X w) g) (sub (X w) g) + 1 * (2 * dot d (X w) g + -1 * dot d g g))
                           (1 * v' + 1 * (2 * dot d g g + -1 * dot d g g)).
    - apply integral_linear; [assumption|]. apply integral_linear; [apply integral_dot | apply integral_const].
    - intro w. rewrite dot_sub, (dot_comm d (X w) (sub _ _)), (dot_comm d g (sub _ _)), !dot_sub, (dot_comm d g (X w)). ring.
    - ring.
  Qed.

  Definition clip s (x : Vec) : Vec := scale (psi (s * norm d x) / (s * norm d x)) x.
  Definition clipped_sum s (l : list Omega) : Vec := fold_right (fun w t => add (clip s (X w)) t) zero l.
  (* |mean of k clipped vectors| *)
  Definition mean_length s k (l : list Omega) := norm d (clipped_sum s (firstn k l)) / INR k.

  (* a direction that does not depend on the draws *)
  Variable u : Vec.
  Hypothesis u_unit : norm d u = 1.
  Variable s : R.
  Hypothesis s_positive : 0 < s.

  Lemma along x : - norm d x <= dot d x u <= norm d x.
  Proof. pose proof (cauchy_schwarz d x u). rewrite u_unit in H. lra. Qed.

  (* s times the component of c(X) along u *)
  Definition Z (w : Omega) := dot d (X w) u * psi (s * norm d (X w)) / norm d (X w).
  Lemma Z_clip w : Z w = s * dot d (clip s (X w)) u.
  Proof.
    unfold Z, clip. rewrite dot_scale. destruct (norm_nonneg d (X w)) as [H|H].
    - field. split; lra.
    - rewrite <- H. unfold Rdiv. rewrite Rmult_0_r, !Rinv_0. ring.
  Qed.
  Lemma sum_along l : sum Z l <= s * norm d (clipped_sum s l).
  Proof.
    apply Rle_trans with (s * dot d (clipped_sum s l) u).
    - induction l as [|w l IH]; [simpl; rewrite dot_zero; lra|].
      change (clipped_sum s (w :: l)) with (add (clip s (X w)) (clipped_sum s l)). change (sum Z (w :: l)) with (Z w + sum Z l).
      rewrite dot_add, Z_clip. lra.
    - apply Rmult_le_compat_l; [lra | apply along].
  Qed.
  Lemma length_from_sum k l rho ell : (0 < k)%nat -> INR k * rho - ell < sum Z (firstn k l) -> rho - ell / INR k < s * mean_length s k l.
  Proof.
    intros Hk H. assert (HK : 0 < INR k) by (apply lt_0_INR; assumption). pose proof (sum_along (firstn k l)).
    unfold mean_length. apply Rmult_lt_reg_r with (INR k); [assumption|].
    replace ((rho - ell / INR k) * INR k) with (INR k * rho - ell) by (field; lra).
    replace (s * (norm d (clipped_sum s (firstn k l)) / INR k) * INR k) with (s * norm d (clipped_sum s (firstn k l))) by (field; lra). lra.
  Qed.

  (* the two factors of a supermartingale *)
  Lemma near_factor : at_most P (fun w => exp ((s * dot d g u - s * s * (v + dot d g g) / 2) - Z w)) 1.
  Proof.
    set (rho := s * dot d g u - s * s * (v + dot d g g) / 2).
    destruct second_moment as [v' [Hv H2]]. pose proof (integral_dot u) as H1.
    pose proof (integral_linear P 1 (s * s / 2) _ _ _ _ (integral_linear P 1 (- s) _ _ _ _ (integral_const P 1) H1) H2) as H3.
    pose proof (integral_scale P (exp rho) _ _ H3) as H4.
    apply at_most_weaken with (fun w => exp rho * (1 * (1 * 1 + - s * dot d (X w) u) + s * s / 2 * dot d (X w) (X w)))
                              (exp rho * (1 * (1 * 1 + - s * dot d g u) + s * s / 2 * (v' + dot d g g))).
    - apply at_most_integral with (exp rho * (1 * (1 * 1 + - s * dot d g u) + s * s / 2 * (v' + dot d g g))); [exact H4 | lra].
    - intro w. unfold Rminus. rewrite exp_plus. apply Rmult_le_compat_l; [left; apply exp_pos|].
      destruct (norm_nonneg d (X w)) as [Hr|Hr].
      + pose proof (exponential_inequality s _ _ s_positive Hr (along (X w))) as K. rewrite norm_square in K. eapply Rle_trans; [exact K | right; field].
      + pose proof (along (X w)) as Ha. rewrite <- Hr in Ha. assert (Hz : dot d (X w) u = 0) by lra.
        unfold Z. rewrite Hz. unfold Rdiv. rewrite !Rmult_0_l, Ropp_0, exp_0.
        pose proof (dot_nonneg d (X w)). nra.
    - apply Rle_trans with (exp rho * exp (- rho)); [|rewrite <- exp_plus, Rplus_opp_r, exp_0; lra].
      apply Rmult_le_compat_l; [left; apply exp_pos|]. apply Rle_trans with (1 + - rho); [|apply exp_ineq1_le].
      unfold rho. nra.
  Qed.
  Lemma far_factor : 1 < s * norm d g -> u = direction d g -> s * s * v <= LARGEST_SPREAD -> at_most P (fun w => exp (22 / 100 - Z w)) 1.
  Proof.
    intros Ha Hu Hsv. unfold LARGEST_SPREAD in Hsv. assert (Hg : 0 < norm d g) by (pose proof (norm_nonneg d g); nra). destruct variance_at_most_v as [v' [Hv H]].
    set (e := exp (22 / 100)). assert (He : 0 < e) by apply exp_pos.
    apply at_most_weaken with (fun w => e * (6568 / 10000 * 1 + 29 / 2 * (s * s) * dot d (sub (X w) g) (sub (X w) g)))
                              (e * (6568 / 10000 * 1 + 29 / 2 * (s * s) * v')).
    - apply at_most_integral with (e * (6568 / 10000 * 1 + 29 / 2 * (s * s) * v')); [|lra].
      apply integral_scale, integral_linear; [apply integral_const | assumption].
    - intro w. unfold Rminus. rewrite exp_plus. apply Rmult_le_compat_l; [left; apply exp_pos|].
      pose proof (far_sample s (norm d (X w)) (dot d (X w) u) (norm d g) (dot d (sub (X w) g) (sub (X w) g)) s_positive (norm_nonneg d (X w)) (along (X w)) Ha) as F.
      unfold Z. rewrite Rmult_1_r. rewrite !(Rmult_assoc (29 / 2)). apply F.
      rewrite dot_sub, (dot_comm d (X w) (sub _ _)), (dot_comm d g (sub _ _)), !dot_sub, (dot_comm d g (X w)).
      rewrite !norm_square, Hu, along_direction. field. lra.
    - apply Rle_trans with (e * (8018 / 10000)).
      + apply Rmult_le_compat_l; [lra | nra].
      + apply Rle_trans with (e * exp (- (22 / 100))); [apply Rmult_le_compat_l; [lra | apply exp_22]|].
        unfold e. rewrite <- exp_plus, Rplus_opp_r, exp_0. lra.
  Qed.
End Factors.

Section Certificate.
  Context {Omega : Type} (P : Expectation Omega) (d : nat) (X : Omega -> Vec) (g : Vec) (v : R).
  Hypothesis mean_is_g : forall i, (i < d)%nat -> integral P (fun w => X w i) (g i).
  Hypothesis variance_at_most_v : exists v', v' <= v /\ integral P (fun w => dot d (sub (X w) g) (sub (X w) g)) v'.

  (* the code states a bound after some k draws, with some B >= v in the place of v, and it is false *)
  Definition false_bound s ell B k (l : list Omega) :=
    stated s B ell k (mean_length d X s k l) /\ U_of s B ell k (mean_length d X s k l) < norm d g.

  Lemma v_nonneg : 0 <= v.
  Proof.
    destruct variance_at_most_v as [v' [Hv [H1 H2]]]. apply Rle_trans with v'; [|assumption]. rewrite <- H2.
    destruct (integral_const P 0) as [H3 H4]. rewrite <- H4. apply E_monotone; auto. intro. apply dot_nonneg.
  Qed.

  (** With probability at least 1 - exp(-ell), for all k at once, no bound that the code states is below |g|. *)
  Theorem one_track s ell n : 0 < s -> 0 < ell ->
    chance P n (fun l => exists k B, (k <= n)%nat /\ v <= B /\ false_bound s ell B k l) (exp (- ell)).
  Proof.
    intros Hs He. pose proof v_nonneg as Hv0.
    assert (Hb : forall B k m, 0 <= m -> v <= B -> 0 < INR k -> 0 <= b_of s B ell k m).
    { intros B k m Hm HB Hk. unfold b_of. assert (0 <= ell / (s * INR k)) by (apply Rmult_le_pos; [lra | left; apply Rinv_0_lt_compat; nra]). nra. }
    assert (Hm0 : forall k l, 0 <= mean_length d X s k l).
    { intros k l. unfold mean_length. destruct (Nat.eq_dec k 0) as [->|Hk]; [simpl; unfold Rdiv; rewrite Rinv_0; lra|].
      apply Rmult_le_pos; [apply norm_nonneg | left; apply Rinv_0_lt_compat, lt_0_INR; lia]. }
    assert (Hcond : forall B k m, stated s B ell k m -> 0 < INR k /\ (0 < k)%nat).
    { intros B k m [Hk _]. unfold LEAST_COUNT in Hk. assert (0 < INR k) by nra. split; [assumption|]. apply INR_lt. assumption. }
    destruct (norm_nonneg d g) as [Ha|Ha].
    2: { (* g = 0: every stated bound is at least 0 *)
      apply chance_weaken with (fun _ => False) 0; [apply chance_never; auto | | left; apply exp_pos].
      intros l _ (k & B & _ & HB & Hst & HU). rewrite <- Ha in HU. destruct (Hcond _ _ _ Hst) as [Hk _].
      unfold U_of in HU. pose proof (Hb B k _ (Hm0 k l) HB Hk) as Hbb. set (b := b_of _ _ _ _ _) in *.
      pose proof (sqrt_pos (1 - 2 * s * b)).
      assert (0 <= 2 * b / (1 + sqrt (1 - 2 * s * b))) by (apply Rmult_le_pos; [lra | left; apply Rinv_0_lt_compat; lra]). lra. }
    destruct (Rle_lt_dec (s * norm d g) 1) as [Hn|Hf].
    - (* a <= 1/s *)
      eapply chance_weaken; [apply (all_k_at_once P (Z d X (direction d g) s) _ ell n (near_factor P d X g v mean_is_g variance_at_most_v (direction d g) (direction_unit d g Ha) s Hs)) | | lra].
      intros l _ (k & B & Hkn & HB & Hst & HU). exists k. split; [assumption|].
      destruct (Rle_lt_dec (sum (Z d X (direction d g) s) (firstn k l)) (INR k * (s * dot d g (direction d g) - s * s * (v + dot d g g) / 2) - ell)) as [|N]; [assumption|].
      exfalso. destruct (Hcond _ _ _ Hst) as [Hk Hk']. pose proof (length_from_sum d X (direction d g) (direction_unit d g Ha) s Hs k l _ _ Hk' N) as Hl.
      pose proof (b_small s B ell k _ Hs He Hst) as Hsb. pose proof (Hb B k _ (Hm0 k l) HB Hk) as Hb0.
      destruct (smaller_root s _ Hs Hb0 ltac:(lra)) as (_ & _ & Hroot). unfold U_of in HU.
      assert (norm d g <= 2 * b_of s B ell k (mean_length d X s k l) / (1 + sqrt (1 - 2 * s * b_of s B ell k (mean_length d X s k l)))); [|lra].
      apply Hroot.
      + split; [lra|]. apply Rmult_le_reg_l with s; [assumption|]. replace (s * (1 / s)) with 1 by (field; lra). assumption.
      + unfold b_of. apply Rmult_le_reg_l with s; [assumption|].
        replace (s * (mean_length d X s k l + s * B / 2 + ell / (s * INR k))) with (s * mean_length d X s k l + s * s * B / 2 + ell / INR k) by (field; split; lra).
        rewrite g_along, <- norm_square in Hl by assumption. nra.
    - (* a > 1/s *)
      destruct (Rle_lt_dec (s * s * v) LARGEST_SPREAD) as [Hsv|Hsv].
      + eapply chance_weaken; [apply (all_k_at_once P (Z d X (direction d g) s) _ ell n (far_factor P d X g v variance_at_most_v (direction d g) (direction_unit d g Ha) s Hs Hf eq_refl Hsv)) | | lra].
        intros l _ (k & B & Hkn & HB & Hst & _). exists k. split; [assumption|].
        destruct (Rle_lt_dec (sum (Z d X (direction d g) s) (firstn k l)) (INR k * (22 / 100) - ell)) as [|N]; [assumption|].
        exfalso. destruct (Hcond _ _ _ Hst) as [Hk Hk']. pose proof (length_from_sum d X (direction d g) (direction_unit d g Ha) s Hs k l _ _ Hk' N) as Hl.
        destruct Hst as (H20 & _ & Hm). unfold LEAST_COUNT, LARGEST_MEAN in *.
        assert (ell / INR k <= 1 / 20).
        { apply Rmult_le_reg_r with (INR k); [assumption|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra. }
        assert (s * mean_length d X s k l <= 17 / 100).
        { replace (17 / 100) with (s * (17 / 100 / s)) by (field; lra). apply Rmult_le_compat_l; lra. }
        lra.
      + (* nothing is stated *)
        apply chance_weaken with (fun _ => False) 0; [apply chance_never; auto | | left; apply exp_pos].
        intros l _ (k & B & _ & HB & (_ & H & _) & _). nra.
  Qed.
End Certificate.

(** * Tracks: shares of delta *)

(* log(1/delta) of track i; [rest] is what is left of delta for the mean, 1 or 1 - VARIANCE_SHARE.
   In the code: Basis::Kurtosis(_) => 1.0 - VARIANCE_SHARE,
   In the code: (1.0 / (FIRST_SHARE * NEXT_SHARE.powi(track) * mean_share * self.delta)).ln() *)
Definition log_of rest delta i := ln (1 / (FIRST_SHARE * NEXT_SHARE ^ i * rest * delta)).

Lemma exp_log x : 0 < x -> exp (- ln (1 / x)) = x.
Proof.
  intro H. unfold Rdiv. rewrite Rmult_1_l, ln_Rinv, Ropp_involutive, exp_ln by assumption. reflexivity.
Qed.
Lemma log_positive x : 0 < x < 1 -> 0 < ln (1 / x).
Proof.
  intros [H H1]. unfold Rdiv. rewrite Rmult_1_l, ln_Rinv by assumption. pose proof (ln_increasing x 1 H H1). rewrite ln_1 in *. lra.
Qed.
Lemma share_range i : 0 < FIRST_SHARE * NEXT_SHARE ^ i < 1.
Proof.
  unfold FIRST_SHARE, NEXT_SHARE. induction i as [|i IH]; [simpl; lra|].
  change (2 / 10 * (2 / 10) ^ i) with ((2 / 10) ^ S i) in *. simpl. lra.
Qed.
Lemma shares_of_tracks c : 0 <= c -> total (fun i => FIRST_SHARE * NEXT_SHARE ^ i * c) TRACKS <= c.
Proof. intro H. unfold TRACKS, FIRST_SHARE, NEXT_SHARE. simpl. lra. Qed.

Section Tracks.
  Context {Omega : Type} (P : Expectation Omega) (d : nat) (X : Omega -> Vec) (g : Vec) (v : R).
  Hypothesis mean_is_g : forall i, (i < d)%nat -> integral P (fun w => X w i) (g i).
  Hypothesis variance_at_most_v : exists v', v' <= v /\ integral P (fun w => dot d (sub (X w) g) (sub (X w) g)) v'.
  (* the scales, one for each track, fixed before the first draw *)
  Variable s : nat -> R.
  Hypothesis s_positive : forall i, 0 < s i.

  (* a false bound on some track, at some k, with some B >= v for v *)
  Definition false_on_a_track rest delta n (Bs : nat -> list Omega -> R -> Prop) (l : list Omega) :=
    exists i, (i < TRACKS)%nat /\ exists k B, (k <= n)%nat /\ Bs k l B /\ false_bound d X g (s i) (log_of rest delta i) B k l.

  Lemma tracks rest delta n : 0 < rest <= 1 -> 0 < delta < 1 ->
    chance P n (false_on_a_track rest delta n (fun _ _ B => v <= B)) (rest * delta).
  Proof.
    intros Hr Hd. assert (Hrd : 0 < rest * delta < 1) by nra.
    assert (Hx : forall i, 0 < FIRST_SHARE * NEXT_SHARE ^ i * rest * delta < 1) by (intro i; pose proof (share_range i); nra).
    eapply chance_weaken; [apply (chance_any P n (fun i l => exists k B, (k <= n)%nat /\ v <= B /\ false_bound d X g (s i) (log_of rest delta i) B k l)
                                            (fun i => FIRST_SHARE * NEXT_SHARE ^ i * (rest * delta)) TRACKS) | |].
    - intros i _. rewrite <- Rmult_assoc. rewrite <- (exp_log (FIRST_SHARE * NEXT_SHARE ^ i * rest * delta)) by apply Hx.
      apply (one_track P d X g v mean_is_g variance_at_most_v (s i) (log_of rest delta i) n (s_positive i)). apply log_positive, Hx.
    - intros l _ H. exact H.
    - apply shares_of_tracks. lra.
  Qed.

  (** THEOREM, declared variance: with probability at least 1 - delta, no bound that any track states after any number of draws is below |g|. *)
  Theorem declared_variance delta n : 0 < delta < 1 ->
    chance P n (false_on_a_track 1 delta n (fun _ _ B => B = v)) delta.
  Proof.
    intro Hd. apply chance_weaken with (false_on_a_track 1 delta n (fun _ _ B => v <= B)) (1 * delta); [apply tracks; lra | | lra].
    intros l _ (i & Hi & k & B & Hk & HB & H). exists i. split; [assumption|]. exists k, B. repeat split; try apply H; [assumption | lra].
  Qed.
End Tracks.

(** * Sub-batches: the mean of m draws has a variance of V/m *)

Section SubBatches.
  Context {Omega : Type} (P : Expectation Omega) (d : nat) (X : Omega -> Vec) (g : Vec) (V : R).
  Hypothesis mean_is_g : forall i, (i < d)%nat -> integral P (fun w => X w i) (g i).
  Hypothesis variance : integral P (fun w => dot d (sub (X w) g) (sub (X w) g)) V.

  Definition deviation (l : list Omega) : Vec := fold_right (fun w t => add (sub (X w) g) t) zero l.
  Definition mean_of (m : nat) (l : list Omega) : Vec := fun i => g i + deviation l i / INR m.

  Lemma integral_draws_0 (F : list Omega -> R) : integral (draws P 0) F (F []).
  Proof. split; simpl; auto. Qed.
  Lemma integral_draws_S n (F : list Omega -> R) (G : Omega -> R) c :
    (forall w, integral (draws P n) (fun l => F (w :: l)) (G w)) -> integral P G c -> integral (draws P (S n)) F c.
  Proof.
    intros H [H1 H2]. assert (K : (fun w => En P n (fun l => F (w :: l))) = G).
    { apply functional_extensionality. intro w. apply H. }
    split; simpl; rewrite K; [split; [intro w; apply H | assumption] | assumption].
  Qed.

  Lemma deviation_mean m i : (i < d)%nat -> integral (draws P m) (fun l => deviation l i) 0.
  Proof.
    intro Hi. induction m as [|m IH]; [apply (integral_draws_0 (fun l => deviation l i))|].
    apply integral_draws_S with (fun w => 1 * X w i + (- g i) * 1).
    - intro w. eapply integral_eq; [apply (integral_plus _ _ _ _ _ (integral_const _ (X w i - g i)) IH) | intro l; reflexivity | ring].
    - eapply integral_eq; [apply (integral_linear P 1 (- g i) _ _ _ _ (mean_is_g i Hi) (integral_const P 1)) | intro; reflexivity | ring].
  Qed.
  Lemma sample_dot y : integral P (fun w => dot d (sub (X w) g) y) 0.
  Proof.
    eapply integral_eq; [apply (integral_linear P 1 (- dot d g y) _ _ _ _ (integral_dot P d X g mean_is_g y) (integral_const P 1)) | | ring].
    intro w. rewrite dot_sub. ring.
  Qed.
  Lemma deviation_square m : forall z, integral (draws P m) (fun l => dot d (add z (deviation l)) (add z (deviation l))) (dot d z z + INR m * V).
  Proof.
    induction m as [|m IH]; intro z.
    - eapply integral_eq; [apply (integral_draws_0 (fun l => dot d (add z (deviation l)) (add z (deviation l)))) | reflexivity |].
      simpl. rewrite dot_add, (dot_comm d z (add _ _)), (dot_comm d zero (add _ _)), !dot_add, (dot_comm d z zero), !dot_zero. ring.
    - apply integral_draws_S with (fun w => dot d (add z (sub (X w) g)) (add z (sub (X w) g)) + INR m * V).
      + intro w. eapply integral_eq; [apply (IH (add z (sub (X w) g))) | | reflexivity].
        intro l. replace (add z (deviation (w :: l))) with (add (add z (sub (X w) g)) (deviation l)); [reflexivity|].
        apply functional_extensionality. intro i. simpl. unfold add. ring.
      + eapply integral_eq;
          [apply (integral_plus P _ _ _ _ (integral_linear P 1 2 _ _ _ _ variance (sample_dot z)) (integral_const P (dot d z z + INR m * V))) | |].
        * intro w. simpl. rewrite dot_add, (dot_comm d z (add _ _)), (dot_comm d (sub _ _) (add _ _)), !dot_add, (dot_comm d z (sub _ _)). ring.
        * rewrite S_INR. ring.
  Qed.

  Theorem mean_of_mean m i : (i < d)%nat -> integral (draws P m) (fun l => mean_of m l i) (g i).
  Proof.
    intro Hi. eapply integral_eq;
      [apply (integral_linear (draws P m) 1 (/ INR m) _ _ _ _ (integral_const _ (g i)) (deviation_mean m i Hi)) | | ring].
    intro l. unfold mean_of, Rdiv. ring.
  Qed.
  Theorem variance_of_mean m : (0 < m)%nat ->
    integral (draws P m) (fun l => dot d (sub (mean_of m l) g) (sub (mean_of m l) g)) (V / INR m).
  Proof.
    intro Hm. assert (HM : 0 < INR m) by (apply lt_0_INR; assumption).
    eapply integral_eq; [apply (integral_scale _ (/ INR m * / INR m) _ _ (deviation_square m zero)) | |].
    - intro l. replace (sub (mean_of m l) g) with (scale (/ INR m) (add zero (deviation l))).
      + rewrite dot_scale, dot_comm, dot_scale. ring.
      + apply functional_extensionality. intro i. unfold sub, mean_of, scale, add, zero. field. lra.
    - rewrite dot_zero. field. lra.
  Qed.
End SubBatches.

(** THEOREM, as the code has it: k means of m samples each, one sample of variance at most V. *)
Theorem declared_variance_of_samples {Omega} (P : Expectation Omega) d (X : Omega -> Vec) (g : Vec) V V' m s delta n :
  (forall i, (i < d)%nat -> integral P (fun w => X w i) (g i)) ->
  integral P (fun w => dot d (sub (X w) g) (sub (X w) g)) V' -> V' <= V ->
  (0 < m)%nat -> (forall i, 0 < s i) -> 0 < delta < 1 ->
  chance (draws P m) n (false_on_a_track d (mean_of X g m) g s 1 delta n (fun _ _ B => B = V / INR m)) delta.
Proof.
  intros Hmean Hvar HV Hm Hs Hd. apply declared_variance; [ | | assumption | assumption].
  - intros i Hi. apply mean_of_mean with d; assumption.
  - exists (V' / INR m). split; [|apply variance_of_mean; assumption].
    apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, lt_0_INR; assumption | assumption].
Qed.

(** * Attempts *)

(* the share of attempt i = 1, 2, ..
   In the code: delta / (i * (i + 1.0)) *)
Definition delta_of_attempt delta i := delta / (INR i * (INR i + 1)).

Section Attempts.
  Context {Omega : Type}.
  (* What attempt number [length past + 1] draws, how often, and whether it states a false bound may depend on all that was drawn before. *)
  Variable law : list (list Omega) -> Expectation Omega.
  Variable horizon : list (list Omega) -> nat.
  Variable is_false : list (list Omega) -> list Omega -> Prop.
  Variable delta : R.
  Hypothesis delta_nonneg : 0 <= delta.
  Hypothesis each : forall past, chance (law past) (horizon past) (is_false past) (delta_of_attempt delta (S (length past))).

  (* the draws of i further attempts, integrated one after another *)
  Fixpoint run_at_most (i : nat) (past : list (list Omega)) (F : list (list Omega) -> R) (c : R) : Prop :=
    match i with
    | O => F past <= c
    | S i => exists G, (forall l, run_at_most i (l :: past) F (G l)) /\ at_most_n (law past) (horizon past) G c
    end.
  Fixpoint any_false (history : list (list Omega)) : Prop :=
    match history with [] => False | l :: past => is_false past l \/ any_false past end.

  (** THEOREM: any number of attempts together are wrong with probability at most delta. *)
  Theorem attempts i : run_at_most i [] (fun history => ind (any_false history)) delta.
  Proof.
    assert (H : forall i past, run_at_most i past (fun history => ind (any_false history))
                                           (ind (any_false past) + delta / INR (S (length past)))).
    { intro j. induction j as [|j IH]; intro past; cbn [run_at_most].
      - assert (0 <= delta / INR (S (length past))) by (apply Rmult_le_pos; [assumption | left; apply Rinv_0_lt_compat, lt_0_INR; lia]). lra.
      - exists (fun l => ind (any_false (l :: past)) + delta / INR (S (length (l :: past)))). split; [intro l; apply IH|].
        set (x := INR (S (length past))). assert (Hx : 0 < x) by (apply lt_0_INR; lia).
        apply at_most_n_weaken with (fun l => ind (is_false past l) + (ind (any_false past) + delta / (x + 1)))
                                    (delta_of_attempt delta (S (length past)) + (ind (any_false past) + delta / (x + 1))).
        + apply at_most_n_plus; [apply each | apply at_most_n_const].
        + intros l _. simpl length. rewrite (S_INR (S (length past))). fold x. cbn [any_false].
          pose proof (ind_range (is_false past l)). pose proof (ind_range (any_false past)). pose proof (ind_range (is_false past l \/ any_false past)).
          destruct (classic (is_false past l)) as [T1|T1]; [rewrite (ind_true (is_false past l)) by auto; lra|].
          destruct (classic (any_false past)) as [T2|T2]; [rewrite (ind_true (any_false past)) by auto; lra|].
          rewrite (ind_false (is_false past l \/ any_false past)) by tauto. lra.
        + unfold delta_of_attempt. fold x. right.
          replace (delta / x) with (delta / (x * (x + 1)) + delta / (x + 1)) by (field; lra). ring. }
    specialize (H i []). rewrite (ind_false (any_false [])) in H by auto.
    replace delta with (0 + delta / INR 1) by (simpl; field). exact H.
  Qed.
End Attempts.

(** * A variance that is not declared: the kurtosis basis *)

(* The variance is estimated from pairs. Hoeffding's average over all ways to pair k draws is taken draw by draw: [pool] holds the draws that
   still wait for a partner, and what waits is paired with the next draw or goes on waiting. *)
Section Pairings.
  Context {Omega : Type} (P : Expectation Omega).
  (* None stands for the draw that is left over where their number is odd; it costs nothing. *)
  Variable h : option Omega -> Omega -> R.
  Variable lambda : R.

  (* the sum of f over all ways to take one out of the pool *)
  Fixpoint over_picks {A} (f : A -> list A -> R) (pool : list A) : R :=
    match pool with [] => 0 | a :: pool => f a pool + over_picks (fun b rest => f b (a :: rest)) pool end.
  Lemma over_picks_le {A} (pool : list A) : forall f g, (forall a rest, S (length rest) = length pool -> f a rest <= g a rest) ->
    over_picks f pool <= over_picks g pool.
  Proof.
    induction pool as [|a pool IH]; intros f g H; simpl; [lra|].
    apply Rplus_le_compat; [apply H; reflexivity | apply IH; intros; apply H; simpl; congruence].
  Qed.
  Lemma over_picks_linear {A} (pool : list A) : forall x y f g,
    over_picks (fun a rest => x * f a rest + y * g a rest) pool = x * over_picks f pool + y * over_picks g pool.
  Proof. induction pool as [|a pool IH]; intros; simpl; [ring | rewrite IH; ring]. Qed.
  Lemma over_picks_const {A} (pool : list A) c : over_picks (fun _ _ => c) pool = INR (length pool) * c.
  Proof. induction pool as [|a pool IH]; [simpl; ring | cbn [over_picks length]; rewrite IH, S_INR; ring]. Qed.

  (* ways to finish with p waiting and r to come *)
  Fixpoint ways (p r : nat) : R :=
    match r with O => match p with O => 1 | _ => 0 end | S r => ways (S p) r + INR p * ways (pred p) r end.
  Lemma ways_nonneg r : forall p, 0 <= ways p r.
  Proof.
    induction r as [|r IH]; intro p; simpl; [destruct p; lra|].
    pose proof (IH (S p)). pose proof (IH (pred p)). pose proof (pos_INR p). nra.
  Qed.
  Lemma ways_none r : forall p, (r < p)%nat -> ways p r = 0.
  Proof.
    induction r as [|r IH]; intros p H; simpl; [destruct p; [lia | reflexivity]|].
    rewrite (IH (S p)) by lia. rewrite (IH (pred p)) by lia. ring.
  Qed.
  Lemma ways_more r : (forall p, ways (S (S p)) r = (INR r - INR p) * ways p r) /\ (forall p, ways (S p) (S r) = INR (S r) * ways p r).
  Proof.
    assert (HA : forall r, (forall p, ways (S (S p)) r = (INR r - INR p) * ways p r) -> forall p, ways (S p) (S r) = INR (S r) * ways p r).
    { intros q H p. cbn [ways pred]. rewrite H, !S_INR. ring. }
    induction r as [|r [IHB IHA]].
    - assert (H : forall p, ways (S (S p)) 0 = (INR 0 - INR p) * ways p 0) by (intro p; destruct p; simpl; ring). auto.
    - assert (H : forall p, ways (S (S p)) (S r) = (INR (S r) - INR p) * ways p (S r)).
      { intro p. rewrite IHA. cbn [ways]. destruct p as [|p]; [cbn [pred]; change (INR 0) with 0; ring|].
        cbn [pred]. rewrite !IHB, !S_INR. ring. }
      auto.
  Qed.
  Lemma ways_two r : ways 0 (S (S r)) = INR (S r) * ways 0 r.
  Proof. cbn [ways pred]. pose proof (proj2 (ways_more r) 0%nat) as H. cbn [ways pred] in H. change (INR 0) with 0 in *. rewrite <- H. ring. Qed.
  Lemma ways_even n : 0 < ways 0 (2 * n).
  Proof.
    induction n as [|n IH]; [simpl; lra|]. replace (2 * S n)%nat with (S (S (2 * n))) by lia. rewrite ways_two.
    apply Rmult_lt_0_compat; [apply lt_0_INR; lia | assumption].
  Qed.

  (* the sum over all pairings of the product of exp(-lambda h) over the pairs, and of the sum of h over the pairs *)
  Fixpoint products (l : list Omega) (pool : list (option Omega)) : R :=
    match l with
    | [] => match pool with [] => 1 | _ => 0 end
    | w :: l => products l (Some w :: pool) + over_picks (fun o rest => exp (- (lambda * h o w)) * products l rest) pool
    end.
  Fixpoint sums (l : list Omega) (pool : list (option Omega)) : R :=
    match l with
    | [] => 0
    | w :: l => sums l (Some w :: pool) + over_picks (fun o rest => ways (pred (length pool)) (length l) * h o w + sums l rest) pool
    end.
  (* Jensen's inequality, by tangents *)
  Lemma jensen l : forall pool x, exp (- x) * (ways (length pool) (length l) * (1 + x) - lambda * sums l pool) <= products l pool.
  Proof.
    induction l as [|w l IH]; intros pool x.
    - destruct pool; simpl.
      + pose proof (exp_tangent 0 (- x)) as T. rewrite exp_0 in T. lra.
      + right. ring.
    - cbn [products sums length ways]. set (r := length l). set (p := length pool).
      apply Rle_trans with (exp (- x) * (ways (S p) r * (1 + x) - lambda * sums l (Some w :: pool))
        + over_picks (fun o rest => exp (- (lambda * h o w)) * (exp (- (x - lambda * h o w)) * (ways (pred p) r * (1 + (x - lambda * h o w)) - lambda * sums l rest))) pool).
      + right.
        replace (fun o rest => exp (- (lambda * h o w)) * (exp (- (x - lambda * h o w)) * (ways (pred p) r * (1 + (x - lambda * h o w)) - lambda * sums l rest)))
          with (fun (o : option Omega) (rest : list (option Omega)) =>
                  exp (- x) * (fun _ _ => ways (pred p) r * (1 + x)) o rest
                  + (- exp (- x) * lambda) * (fun o rest => ways (pred p) r * h o w + sums l rest) o rest).
        * rewrite over_picks_linear, over_picks_const. fold p. ring.
        * apply functional_extensionality. intro o. apply functional_extensionality. intro rest.
          replace (exp (- (lambda * h o w)) * (exp (- (x - lambda * h o w)) * (ways (pred p) r * (1 + (x - lambda * h o w)) - lambda * sums l rest)))
            with (exp (- (lambda * h o w)) * exp (- (x - lambda * h o w)) * (ways (pred p) r * (1 + (x - lambda * h o w)) - lambda * sums l rest)) by ring.
          rewrite <- exp_plus. replace (- (lambda * h o w) + - (x - lambda * h o w)) with (- x) by ring. ring.
      + apply Rplus_le_compat; [apply (IH (Some w :: pool) x)|]. apply over_picks_le. intros o rest Hrest.
        apply Rmult_le_compat_l; [left; apply exp_pos|].
        specialize (IH rest (x - lambda * h o w)). fold r in IH. replace (pred p) with (length rest) by (unfold p; rewrite <- Hrest; reflexivity). exact IH.
  Qed.

  (* all pairs of the list; all pairs of one who waits with one of the list *)
  Fixpoint with_all (o : option Omega) (l : list Omega) : R := match l with [] => 0 | w :: l => h o w + with_all o l end.
  Fixpoint all_pairs (l : list Omega) : R := match l with [] => 0 | w :: l => with_all (Some w) l + all_pairs l end.
  Definition waiting (pool : list (option Omega)) (l : list Omega) := fold_right (fun o t => with_all o l + t) 0 pool.
  Definition waiting_one (pool : list (option Omega)) w := fold_right (fun o t => h o w + t) 0 pool.

  Lemma waiting_cons pool w l : waiting pool (w :: l) = waiting_one pool w + waiting pool l.
  Proof. induction pool as [|o pool IH]; simpl in *; [ring | rewrite IH; ring]. Qed.
  Lemma picks_one pool w : over_picks (fun o _ => h o w) pool = waiting_one pool w.
  Proof. induction pool as [|o pool IH]; simpl; [ring | rewrite IH; reflexivity]. Qed.
  Lemma picks_rest pool l : over_picks (fun _ rest => waiting rest l) pool = (INR (length pool) - 1) * waiting pool l.
  Proof.
    induction pool as [|o pool IH]; [simpl; ring|]. cbn [over_picks length]. rewrite S_INR.
    replace (fun (_ : option Omega) rest => waiting (o :: rest) l) with (fun (a : option Omega) rest => 1 * (fun _ _ => with_all o l) a rest + 1 * (fun _ rest => waiting rest l) a rest).
    - rewrite over_picks_linear, over_picks_const, IH. simpl. ring.
    - apply functional_extensionality. intro. apply functional_extensionality. intro. simpl. ring.
  Qed.
  Lemma waiting_nil pool : waiting pool [] = 0.
  Proof. induction pool as [|o pool IH]; simpl in *; [reflexivity | rewrite IH; ring]. Qed.

  (* every pair stands in equally many pairings *)
  Lemma sums_closed l : forall pool,
    sums l pool = ways (pred (length pool)) (pred (length l)) * waiting pool l + ways (length pool) (pred (pred (length l))) * all_pairs l.
  Proof.
    induction l as [|w l IH]; intro pool.
    - simpl. rewrite waiting_nil. ring.
    - cbn [sums length pred]. rewrite IH, waiting_cons. cbn [length all_pairs].
      set (p := length pool). set (r := length l).
      replace (waiting (Some w :: pool) l) with (with_all (Some w) l + waiting pool l) by reflexivity.
      assert (K : over_picks (fun o rest => ways (pred p) r * h o w + sums l rest) pool
                = ways (pred p) r * waiting_one pool w + INR p * (ways (pred p) (pred (pred r)) * all_pairs l)
                  + ways (pred (pred p)) (pred r) * ((INR p - 1) * waiting pool l)).
      { transitivity (over_picks (fun o rest => 1 * (fun o rest => ways (pred p) r * (fun o _ => h o w) o rest + 1 * (fun _ _ => ways (pred p) (pred (pred r)) * all_pairs l) o rest) o rest
                                        + ways (pred (pred p)) (pred r) * (fun _ rest => waiting rest l) o rest) pool).
        - apply Rle_antisym; apply over_picks_le; intros o rest Hrest; rewrite IH;
            replace (length rest) with (pred p) by (unfold p; rewrite <- Hrest; reflexivity); fold r; lra.
        - rewrite over_picks_linear, over_picks_linear, picks_one, over_picks_const, picks_rest. fold p. ring. }
      rewrite K. clear K IH. destruct l as [|w' l].
      + simpl. rewrite waiting_nil. ring.
      + destruct r as [|r'] eqn:Hr; [discriminate|]. cbn [pred].
        assert (K1 : p = 0%nat \/ ways (pred p) (S r') = ways p r' + (INR p - 1) * ways (pred (pred p)) r').
        { destruct p as [|q]; [left; reflexivity | right; cbn [ways pred]; rewrite S_INR; ring]. }
        assert (K2 : all_pairs (w' :: l) = 0 \/ ways p r' = ways (S p) (pred r') + INR p * ways (pred p) (pred r')).
        { destruct r' as [|r'']; [left; destruct l; [simpl; ring | simpl in Hr; unfold r in Hr; simpl in Hr; discriminate] | right; reflexivity]. }
        destruct K1 as [K1|K1].
        * assert (Hw : pool = []) by (destruct pool; [reflexivity | discriminate]). rewrite Hw. simpl (waiting [] _). simpl (waiting_one [] _).
          rewrite K1 in *. change (INR 0) with 0 in *. cbn [pred]. destruct K2 as [K2|K2]; rewrite K2; ring.
        * rewrite K1. destruct K2 as [K2|K2]; rewrite K2; ring.
  Qed.

  (* The expectation of the products. G bounds E exp(-lambda h(o, X)), q bounds E G(X). *)
  Variables (G : option Omega -> R) (q : R).
  Hypothesis G_nonneg : forall o, 0 <= G o.
  Hypothesis close : forall o, at_most P (fun w => exp (- (lambda * h o w))) (G o).
  Hypothesis open : at_most P (fun w => G (Some w)) q.
  Hypothesis q_nonneg : 0 <= q.

  Definition all_G (pool : list (option Omega)) := fold_right (fun o t => G o * t) 1 pool.
  Lemma all_G_nonneg pool : 0 <= all_G pool.
  Proof. induction pool as [|o pool IH]; simpl; [lra | apply Rmult_le_pos; [apply G_nonneg | assumption]]. Qed.
  Lemma picks_G pool : forall K, over_picks (fun o rest => G o * (K * all_G rest)) pool = INR (length pool) * (K * all_G pool).
  Proof.
    induction pool as [|o pool IH]; intro K; [simpl; ring|]. cbn [over_picks length]. rewrite S_INR.
    replace (fun b rest => G b * (K * all_G (o :: rest))) with (fun b rest => G b * (K * G o * all_G rest)).
    - rewrite IH. simpl. ring.
    - apply functional_extensionality. intro. apply functional_extensionality. intro. simpl. ring.
  Qed.
  Lemma at_most_picks pool : forall (D : option Omega -> list (option Omega) -> R), (forall o rest, 0 <= D o rest) ->
    at_most P (fun w => over_picks (fun o rest => exp (- (lambda * h o w)) * D o rest) pool) (over_picks (fun o rest => G o * D o rest) pool).
  Proof.
    induction pool as [|o pool IH]; intros D HD; simpl; [apply at_most_const|].
    apply at_most_plus; [|apply IH; auto].
    apply at_most_weaken with (fun w => D o pool * exp (- (lambda * h o w))) (D o pool * G o); [apply at_most_scale; auto | intro; lra | lra].
  Qed.
  Lemma at_most_n_picks n pool : forall (F : option Omega -> list (option Omega) -> list Omega -> R) C,
    (forall o rest, S (length rest) = length pool -> at_most_n P n (F o rest) (C o rest)) ->
    at_most_n P n (fun l => over_picks (fun o rest => F o rest l) pool) (over_picks C pool).
  Proof.
    induction pool as [|o pool IH]; intros F C H; simpl; [apply at_most_n_const|].
    apply at_most_n_plus; [apply H; reflexivity | apply (IH (fun b rest => F b (o :: rest)) (fun b rest => C b (o :: rest))); intros; apply H; simpl; congruence].
  Qed.

  Definition bound_of p r := ways p r * q ^ Nat.div2 (r - p).
  Lemma bound_nonneg p r : 0 <= bound_of p r.
  Proof. apply Rmult_le_pos; [apply ways_nonneg | apply pow_le; assumption]. Qed.
  Lemma bound_step p r : bound_of (S p) r * q + INR p * bound_of (pred p) r = bound_of p (S r).
  Proof.
    unfold bound_of. cbn [ways]. rewrite Rmult_plus_distr_r. f_equal.
    - destruct (Nat.lt_ge_cases r (S p)) as [H|H]; [rewrite (ways_none r (S p) H); ring|].
      replace (S r - p)%nat with (S (S (r - S p))) by lia. simpl. ring.
    - destruct p as [|p]; [change (INR 0) with 0; ring|]. cbn [pred]. replace (S r - S p)%nat with (r - p)%nat by lia. ring.
  Qed.
  Lemma products_at_most n : forall pool, at_most_n P n (fun l => products l pool) (bound_of (length pool) n * all_G pool).
  Proof.
    induction n as [|n IH]; intro pool.
    - simpl. destruct pool; unfold bound_of; simpl; lra.
    - cbn [at_most_n]. set (p := length pool).
      exists (fun w => bound_of (S p) n * (G (Some w) * all_G pool) + over_picks (fun o rest => exp (- (lambda * h o w)) * (bound_of (pred p) n * all_G rest)) pool).
      split.
      + intro w. cbn [products]. apply at_most_n_plus; [apply (IH (Some w :: pool))|].
        apply (at_most_n_picks n pool (fun o rest l => exp (- (lambda * h o w)) * products l rest)). intros o rest Hrest.
        apply at_most_n_scale; [left; apply exp_pos|]. replace (pred p) with (length rest) by (unfold p; rewrite <- Hrest; reflexivity). apply IH.
      + apply at_most_weaken with (fun w => bound_of (S p) n * all_G pool * G (Some w)
            + over_picks (fun o rest => exp (- (lambda * h o w)) * (bound_of (pred p) n * all_G rest)) pool)
          (bound_of (S p) n * all_G pool * q + over_picks (fun o rest => G o * (bound_of (pred p) n * all_G rest)) pool).
        * apply at_most_plus.
          -- apply at_most_scale; [apply Rmult_le_pos; [apply bound_nonneg | apply all_G_nonneg] | assumption].
          -- apply at_most_picks. intros. apply Rmult_le_pos; [apply bound_nonneg | apply all_G_nonneg].
        * intro w. right. ring.
        * rewrite picks_G. fold p. rewrite <- bound_step. right. ring.
  Qed.
End Pairings.

Lemma exp_above z : 0 <= z -> 1 + z + z * z / 2 <= exp z.
Proof.
  intros [H|<-]; [|rewrite exp_0; lra].
  destruct (MVT_cor2 (fun x => exp x - (1 + x + x * x / 2)) (fun x => exp x - (1 + x)) 0 z H) as [c [Hc [Hc0 _]]].
  - intros c _. apply (derivable_pt_lim_minus exp (fun x => 1 + x + x * x / 2)); [apply derivable_pt_lim_exp|].
    replace (1 + c) with ((0 + 1) + (c + c) * / 2) by field.
    apply (derivable_pt_lim_plus (fun x => 1 + x) (fun x => x * x / 2)); [apply (derivable_pt_lim_plus (fun _ => 1) id); [apply derivable_pt_lim_const | apply derivable_pt_lim_id]|].
    replace ((c + c) * / 2) with ((1 * c + c * 1) * / 2 + (c * c) * 0) by field.
    apply (derivable_pt_lim_mult (fun x => x * x) (fun _ => / 2)); [|apply derivable_pt_lim_const].
    apply (derivable_pt_lim_mult id id); apply derivable_pt_lim_id.
  - rewrite exp_0 in Hc. pose proof (exp_ineq1_le c). assert (0 <= (exp c - (1 + c)) * (z - 0)) by (apply Rmult_le_pos; lra). lra.
Qed.
Lemma exp_below z : 0 <= z -> exp (- z) <= 1 - z + z * z / 2.
Proof.
  intro H. rewrite exp_Ropp. apply Rmult_le_reg_l with (exp z); [apply exp_pos|]. rewrite Rinv_r by (apply Rgt_not_eq, exp_pos).
  pose proof (exp_above z H). assert (0 < 1 - z + z * z / 2) by nra.
  apply Rle_trans with ((1 + z + z * z / 2) * (1 - z + z * z / 2)); [nra | apply Rmult_le_compat_r; lra].
Qed.

Section Variance.
  Context {Omega : Type} (P : Expectation Omega) (d : nat) (X : Omega -> Vec) (g : Vec) (v kappa : R).
  Let A w := sub (X w) g.
  Hypothesis mean_is_g : forall i, (i < d)%nat -> integral P (fun w => X w i) (g i).
  Hypothesis variance : integral P (fun w => dot d (A w) (A w)) v.
  Hypothesis third : exists t : Vec, forall i, (i < d)%nat -> integral P (fun w => dot d (A w) (A w) * A w i) (t i).
  Hypothesis fourth : exists f, f <= kappa * (v * v) /\ integral P (fun w => dot d (A w) (A w) * dot d (A w) (A w)) f.

  Definition pair_h (o : option Omega) (w : Omega) : R :=
    match o with None => 0 | Some x => dot d (sub (X x) (X w)) (sub (X x) (X w)) / 2 end.
  Lemma pair_nonneg o w : 0 <= pair_h o w.
  Proof. destruct o as [x|]; simpl; [pose proof (dot_nonneg d (sub (X x) (X w))); lra | lra]. Qed.

  (* the unbiased estimate from k means: scatter/(k - 1) *)
  Definition vector_sum (l : list Omega) : Vec := fold_right (fun w t => add (X w) t) zero l.
  Definition scatter (l : list Omega) : R :=
    let mean := scale (/ INR (length l)) (vector_sum l) in fold_right (fun w t => dot d (sub (X w) mean) (sub (X w) mean) + t) 0 l.
  Definition estimate (l : list Omega) : R := scatter l / (INR (length l) - 1).

  Lemma dot_sub_sub x y : dot d (sub x y) (sub x y) = dot d x x - 2 * dot d x y + dot d y y.
  Proof. rewrite dot_sub, (dot_comm d x (sub _ _)), (dot_comm d y (sub _ _)), !dot_sub, (dot_comm d y x). ring. Qed.
  Lemma dot_add_add x y : dot d (add x y) (add x y) = dot d x x + 2 * dot d x y + dot d y y.
  Proof. rewrite dot_add, (dot_comm d x (add _ _)), (dot_comm d y (add _ _)), !dot_add, (dot_comm d y x). ring. Qed.
  Definition squares (l : list Omega) := fold_right (fun w t => dot d (X w) (X w) + t) 0 l.
  Lemma scatter_about c l : fold_right (fun w t => dot d (sub (X w) c) (sub (X w) c) + t) 0 l
    = squares l - 2 * dot d (vector_sum l) c + INR (length l) * dot d c c.
  Proof.
    induction l as [|w l IH]; [simpl; rewrite dot_zero; ring|]. cbn [fold_right length squares vector_sum]. rewrite IH, S_INR, dot_sub_sub.
    unfold squares, vector_sum. rewrite dot_add. ring.
  Qed.
  Lemma with_all_closed x l : with_all pair_h (Some x) l = (INR (length l) * dot d (X x) (X x) - 2 * dot d (X x) (vector_sum l) + squares l) / 2.
  Proof.
    induction l as [|w l IH]; [simpl; rewrite (dot_comm d (X x) zero), dot_zero; field|].
    cbn [with_all length]. rewrite IH, S_INR. simpl. rewrite dot_sub_sub, (dot_comm d (X x) (add _ _)), dot_add, (dot_comm d (X w) (X x)).
    rewrite (dot_comm d (X x) (vector_sum l)). unfold squares, vector_sum. field.
  Qed.
  Lemma all_pairs_closed l : all_pairs pair_h l = (INR (length l) * squares l - dot d (vector_sum l) (vector_sum l)) / 2.
  Proof.
    induction l as [|w l IH]; [simpl; rewrite dot_zero; field|].
    cbn [all_pairs length]. rewrite IH, with_all_closed, S_INR. simpl. rewrite dot_add_add. unfold squares, vector_sum. field.
  Qed.
  Lemma estimate_pairs l : (2 <= length l)%nat -> all_pairs pair_h l = INR (length l) * (INR (length l) - 1) / 2 * estimate l.
  Proof.
    intro H. assert (HK : 2 <= INR (length l)) by (apply (le_INR 2); assumption).
    unfold estimate, scatter. rewrite all_pairs_closed, scatter_about, dot_scale, !(dot_comm d (vector_sum l) (scale _ _)), !dot_scale.
    field. lra.
  Qed.

  (* E h = v and E h^2 <= (kappa + 3) v^2/2, so E exp(-lambda h) <= q *)
  Section One.
    Variable lambda : R.
    Hypothesis lambda_nonneg : 0 <= lambda.
    Definition q_of := exp (- (lambda * v) + lambda * lambda * ((kappa + 3) * (v * v)) / 4).

    Lemma G_exists : exists G : option Omega -> R, G None = 1 /\ (forall o, at_most P (fun w => exp (- (lambda * pair_h o w))) (G o))
      /\ at_most P (fun w => G (Some w)) q_of.
    Proof.
      destruct third as [t Ht]. destruct fourth as [f [Hf H4]].
      (* E |A|^2 <A, y> = <t, y> *)
      assert (H3 : forall y, integral P (fun w => dot d (A w) (A w) * dot d (A w) y) (dot d t y)).
      { intro y. assert (K : forall n, (n <= d)%nat -> integral P (fun w => dot d (A w) (A w) * dot n (A w) y) (dot n t y)).
        { induction n as [|n IH]; intro Hn; simpl.
          - eapply integral_eq; [apply (integral_const P 0) | intro w; cbv beta; ring | reflexivity].
          - eapply integral_eq; [apply (integral_linear P 1 (y n) _ _ _ _ (IH ltac:(lia)) (Ht n ltac:(lia))) | intro w; cbv beta; ring | ring]. }
        apply K. lia. }
      assert (H1 : forall y, integral P (fun w => dot d (A w) y) 0) by (intro y; apply (sample_dot P d X g mean_is_g)).
      set (poly := fun b : Vec => 1 - lambda * (dot d b b + v) / 2 + lambda * lambda / 8 * (dot d b b * dot d b b + f + 6 * v * dot d b b - 4 * dot d t b)).
      exists (fun o => match o with None => 1 | Some x => poly (A x) end). split; [reflexivity|]. split.
      - intros [x|]; [|apply at_most_weaken with (fun _ => 1) 1; [apply at_most_const | intro; simpl; rewrite Rmult_0_r, Ropp_0, exp_0; lra | lra]].
        set (b := A x).
        apply at_most_weaken with
          (fun w => (1 - lambda * dot d b b / 2 + lambda * lambda / 8 * (dot d b b * dot d b b))
                    + (1 * ((- lambda / 2 + lambda * lambda / 8 * (6 * dot d b b)) * dot d (A w) (A w)
                            + (lambda - lambda * lambda / 2 * dot d b b) * dot d (A w) b)
                       + 1 * (lambda * lambda / 8 * (dot d (A w) (A w) * dot d (A w) (A w)) + - (lambda * lambda / 2) * (dot d (A w) (A w) * dot d (A w) b))))
          ((1 - lambda * dot d b b / 2 + lambda * lambda / 8 * (dot d b b * dot d b b))
                    + (1 * ((- lambda / 2 + lambda * lambda / 8 * (6 * dot d b b)) * v
                            + (lambda - lambda * lambda / 2 * dot d b b) * 0)
                       + 1 * (lambda * lambda / 8 * f + - (lambda * lambda / 2) * dot d t b))).
        + eapply at_most_integral; [|apply Rle_refl]. apply integral_plus; [apply integral_const|].
          apply integral_linear; apply integral_linear; auto.
        + intro w. eapply Rle_trans; [apply exp_below; apply Rmult_le_pos; [assumption | apply pair_nonneg]|]. simpl.
          replace (sub (X x) (X w)) with (sub b (A w)) by (apply functional_extensionality; intro; unfold b, A, sub; ring).
          rewrite dot_sub_sub. rewrite (dot_comm d b (A w)).
          pose proof (cauchy_schwarz d (A w) b) as C. pose proof (norm_square d (A w)) as N1. pose proof (norm_square d b) as N2.
          assert (C2 : dot d (A w) b * dot d (A w) b <= dot d (A w) (A w) * dot d b b).
          { rewrite <- N1, <- N2. pose proof (norm_nonneg d (A w)). pose proof (norm_nonneg d b). nra. }
          set (p := dot d b b) in *. set (r := dot d (A w) (A w)) in *. set (c := dot d (A w) b) in *.
          assert (0 <= lambda * lambda) by nra.
          assert (K : lambda * lambda * (c * c) <= lambda * lambda * (r * p)) by (apply Rmult_le_compat_l; assumption). nra.
        + unfold poly. right. field.
      - apply at_most_weaken with
          (fun w => (1 - lambda * v / 2 + lambda * lambda / 8 * f)
                    + (1 * ((- lambda / 2 + lambda * lambda / 8 * (6 * v)) * dot d (A w) (A w) + - (lambda * lambda / 2) * dot d (A w) t)
                       + lambda * lambda / 8 * (dot d (A w) (A w) * dot d (A w) (A w))))
          ((1 - lambda * v / 2 + lambda * lambda / 8 * f)
                    + (1 * ((- lambda / 2 + lambda * lambda / 8 * (6 * v)) * v + - (lambda * lambda / 2) * 0) + lambda * lambda / 8 * f)).
        + eapply at_most_integral; [|apply Rle_refl]. apply integral_plus; [apply integral_const|].
          apply integral_linear; [apply integral_linear; auto | assumption].
        + intro w. unfold poly. rewrite (dot_comm d t (A w)). right. field.
        + unfold q_of. eapply Rle_trans; [|apply exp_ineq1_le].
          assert (K : lambda * lambda * f <= lambda * lambda * (kappa * (v * v))) by (apply Rmult_le_compat_l; nra). nra.
    Qed.

    Lemma exp_estimate k : (2 <= k)%nat ->
      at_most_n P k (fun l => exp (- (lambda * (INR (k / 2) * estimate l)))) (q_of ^ (k / 2)).
    Proof.
      intro Hk. destruct G_exists as (G & G0 & Gclose & Gopen).
      assert (Gn : forall o, 0 <= G o).
      { intro o. destruct (Gclose o) as [f [Hf [Hle Hc]]]. destruct (integral_const P 0) as [I1 I2].
        apply Rle_trans with (E P f); [|assumption]. rewrite <- I2. apply E_monotone; auto. intro w. apply Rle_trans with (2 := Hle w). left. apply exp_pos. }
      assert (Qn : 0 <= q_of) by (left; apply exp_pos).
      set (n := (k / 2)%nat). assert (HK : 2 <= INR k) by (apply (le_INR 2); assumption).
      (* the pool that makes the number even *)
      assert (exists pool, all_G G pool = 1 /\ (forall l, waiting pair_h pool l = 0) /\ 0 < ways (length pool) k /\ Nat.div2 (k - length pool) = n
        /\ ways (length pool) (k - 2) * (INR k * (INR k - 1) / 2) = ways (length pool) k * INR n) as (pool & HG & Hw & Hpos & Hn & Hcount).
      { pose proof (Nat.div_mod k 2 ltac:(lia)) as D. pose proof (Nat.mod_upper_bound k 2 ltac:(lia)) as Mo. fold n in D.
        destruct (k mod 2)%nat as [|[|]] eqn:Em; [| |lia].
        - exists []. assert (Hk2 : k = (2 * n)%nat) by lia. destruct n as [|n'] eqn:En; [lia|].
          repeat split; [rewrite Hk2; apply ways_even | simpl length; rewrite Nat.sub_0_r, Hk2; apply Nat.div2_double|].
          replace k with (S (S (2 * n'))) at 4 by lia. simpl length. rewrite ways_two. replace (k - 2)%nat with (2 * n')%nat by lia.
          rewrite Hk2. replace (2 * S n')%nat with (S (S (2 * n'))) by lia. rewrite !S_INR, mult_INR. simpl (INR 2). field.
        - exists [None]. assert (Hk2 : k = S (2 * n)) by lia. destruct n as [|n'] eqn:En; [lia|].
          assert (W : forall r, ways 1 (S r) = INR (S r) * ways 0 r) by (intro r; apply (proj2 (ways_more r))).
          repeat split.
          + simpl. rewrite G0. ring.
          + intro l. simpl. assert (Z0 : with_all pair_h None l = 0) by (induction l as [|w l IHl]; simpl; [reflexivity | rewrite IHl; ring]). rewrite Z0. ring.
          + simpl length. rewrite Hk2, W. apply Rmult_lt_0_compat; [apply lt_0_INR; lia | apply ways_even].
          + simpl length. rewrite Hk2. replace (S (2 * S n') - 1)%nat with (2 * S n')%nat by lia. apply Nat.div2_double.
          + simpl length. rewrite Hk2. replace (S (2 * S n') - 2)%nat with (S (2 * n')) by lia. rewrite !W.
            replace (2 * S n')%nat with (S (S (2 * n'))) by lia. rewrite ways_two, !S_INR, mult_INR. simpl (INR 2). field. }
      set (c := ways (length pool) k) in *.
      apply at_most_n_weaken with (fun l => / c * products pair_h lambda l pool) (/ c * (bound_of q_of (length pool) k * all_G G pool)).
      - apply at_most_n_scale; [left; apply Rinv_0_lt_compat; assumption|]. apply products_at_most; assumption.
      - intros l Hl. set (x := lambda * (INR n * estimate l)).
        pose proof (jensen pair_h lambda l pool x) as J. rewrite sums_closed, Hw, Rmult_0_r, Rplus_0_l, Hl in J.
        replace (pred (pred k)) with (k - 2)%nat in J by lia. rewrite (estimate_pairs l) in J by lia. rewrite Hl in J. fold c in J.
        replace (c * (1 + x) - lambda * (ways (length pool) (k - 2) * (INR k * (INR k - 1) / 2 * estimate l))) with c in J.
        + apply Rmult_le_reg_l with c; [assumption|]. rewrite <- Rmult_assoc, Rinv_r, Rmult_1_l by lra. lra.
        + replace (ways (length pool) (k - 2) * (INR k * (INR k - 1) / 2 * estimate l))
            with (ways (length pool) (k - 2) * (INR k * (INR k - 1) / 2) * estimate l) by ring.
          rewrite Hcount. unfold x. ring.
      - rewrite HG. unfold bound_of. fold c. rewrite Hn. right. field. lra.
    Qed.
  End One.

  (* kappa is that of a mean of m samples.
     In the code: ((kurtosis_of_mean(kappa, self.samples_each) + 3.0) * log / (count / 2) as f64).sqrt() *)
  Definition t_of log k := sqrt ((kappa + 3) * log / INR (k / 2)).

  (** One look: with probability at least 1 - exp(-log), v <= estimate/(1 - t). *)
  Theorem variance_look log k : 0 <= kappa -> 0 < log -> (2 <= k)%nat -> t_of log k < 1 ->
    chance P k (fun l => estimate l / (1 - t_of log k) < v) (exp (- log)).
  Proof.
    intros Hkappa Hlog Hk Ht. set (t := t_of log k) in *. set (N := INR (k / 2)).
    assert (HN : 0 < N) by (apply lt_0_INR; apply Nat.div_str_pos; lia).
    assert (Ht0 : 0 <= t) by apply sqrt_pos.
    assert (Htt : t * t = (kappa + 3) * log / N).
    { apply sqrt_sqrt. apply Rmult_le_pos; [apply Rmult_le_pos; lra | left; apply Rinv_0_lt_compat; assumption]. }
    assert (Hv : 0 <= v).
    { destruct variance as [H1 H2]. destruct (integral_const P 0) as [I1 I2]. rewrite <- H2, <- I2. apply E_monotone; auto. intro. apply dot_nonneg. }
    assert (Hest : forall l, length l = k -> 0 <= estimate l).
    { intros l Hl. unfold estimate. rewrite Hl. assert (2 <= INR k) by (apply (le_INR 2); assumption).
      apply Rmult_le_pos; [|left; apply Rinv_0_lt_compat; lra]. unfold scatter. generalize (scale (/ INR (length l)) (vector_sum l)). intro m. clear Hl.
      induction l as [|w l IH]; simpl; [lra | pose proof (dot_nonneg d (sub (X w) m)); lra]. }
    destruct Hv as [Hv|Hv].
    2: { apply chance_weaken with (fun _ => False) 0; [apply chance_never; auto | | left; apply exp_pos].
      intros l Hl H. rewrite <- Hv in H. specialize (Hest l Hl).
      assert (0 <= estimate l / (1 - t)) by (apply Rmult_le_pos; [assumption | left; apply Rinv_0_lt_compat; lra]). lra. }
    set (lambda := 2 * t / ((kappa + 3) * v)).
    assert (Hlambda : 0 <= lambda) by (unfold lambda; apply Rmult_le_pos; [lra | left; apply Rinv_0_lt_compat, Rmult_lt_0_compat; lra]).
    set (z := lambda * (N * ((1 - t) * v))).
    apply at_most_n_weaken with (fun l => exp z * exp (- (lambda * (N * estimate l)))) (exp z * q_of lambda ^ (k / 2)).
    - apply at_most_n_scale; [left; apply exp_pos | apply exp_estimate; assumption].
    - intros l Hl. destruct (classic (estimate l / (1 - t) < v)) as [H|H].
      + rewrite ind_true by assumption. rewrite <- exp_plus. rewrite <- exp_0. apply exp_monotone. unfold z.
        assert (estimate l < (1 - t) * v).
        { apply Rmult_lt_reg_r with (/ (1 - t)); [apply Rinv_0_lt_compat; lra|]. replace ((1 - t) * v * / (1 - t)) with v by (field; lra). exact H. }
        assert (lambda * (N * estimate l) <= lambda * (N * ((1 - t) * v))); [|lra].
        apply Rmult_le_compat_l; [assumption|]. apply Rmult_le_compat_l; lra.
      + rewrite ind_false by assumption. apply Rmult_le_pos; left; apply exp_pos.
    - unfold q_of. rewrite <- exp_times, <- exp_plus. apply exp_monotone. fold N. unfold z, lambda.
      right. replace log with (t * t * N / (kappa + 3)) by (rewrite Htt; field; split; lra). field. split; lra.
  Qed.
End Variance.

(** * The kurtosis basis: looks at the variance and tracks together *)

(* In the code: -(VARIANCE_SHARE * LOOK_SHARE.powi(j + 1) * self.delta).ln() *)
Definition log_of_variance_look delta j := - ln (VARIANCE_SHARE * LOOK_SHARE ^ S j * delta).

Lemma shares_of_looks c J : 0 <= c -> total (fun j => VARIANCE_SHARE * LOOK_SHARE ^ S j * c) J <= VARIANCE_SHARE * c.
Proof.
  intro H. assert (K : total (fun j => VARIANCE_SHARE * LOOK_SHARE ^ S j * c) J = VARIANCE_SHARE * c * (1 - LOOK_SHARE ^ J)).
  { unfold VARIANCE_SHARE, LOOK_SHARE. induction J as [|J IH]; [simpl; ring|]. cbn [total]. rewrite IH. simpl. field. }
  rewrite K. assert (0 <= LOOK_SHARE ^ J) by (apply pow_le; unfold LOOK_SHARE; lra). unfold VARIANCE_SHARE in *. nra.
Qed.

Section Kurtosis.
  Context {Omega : Type} (P : Expectation Omega) (d : nat) (X : Omega -> Vec) (g : Vec) (v kappa : R).
  Let A w := sub (X w) g.
  Hypothesis mean_is_g : forall i, (i < d)%nat -> integral P (fun w => X w i) (g i).
  Hypothesis variance : integral P (fun w => dot d (A w) (A w)) v.
  Hypothesis third : exists t : Vec, forall i, (i < d)%nat -> integral P (fun w => dot d (A w) (A w) * A w i) (t i).
  Hypothesis fourth : exists f, f <= kappa * (v * v) /\ integral P (fun w => dot d (A w) (A w) * dot d (A w) (A w)) f.
  Hypothesis kappa_nonneg : 0 <= kappa.
  Variable s : nat -> R.
  Hypothesis s_positive : forall i, 0 < s i.
  (* look j = 0, 1, .. is taken after [count j] means *)
  Variable count : nat -> nat.

  (* B is what some look with t < 1 says of v, when k means are drawn *)
  Definition seen delta J k (l : list Omega) (B : R) := exists j, (j < J)%nat /\ (2 <= count j <= k)%nat
    /\ t_of kappa (log_of_variance_look delta j) (count j) < 1
    /\ B = estimate d X (firstn (count j) l) / (1 - t_of kappa (log_of_variance_look delta j) (count j)).

  (** THEOREM, kurtosis: with probability at least 1 - delta, no bound that any track states after any number of draws, with what any look said of v,
      is below |g|. *)
  Theorem kurtosis_basis delta n J : 0 < delta < 1 ->
    chance P n (false_on_a_track d X g s (1 - VARIANCE_SHARE) delta n (seen delta J)) delta.
  Proof.
    intro Hd.
    set (wrong_look := fun j l => (2 <= count j <= n)%nat /\ t_of kappa (log_of_variance_look delta j) (count j) < 1
       /\ estimate d X (firstn (count j) l) / (1 - t_of kappa (log_of_variance_look delta j) (count j)) < v).
    assert (Hx : forall j, 0 < VARIANCE_SHARE * LOOK_SHARE ^ S j * delta < 1).
    { intro j. assert (0 < LOOK_SHARE ^ S j <= 1).
      { split; [apply pow_lt; unfold LOOK_SHARE; lra|]. rewrite <- (pow1 (S j)). apply pow_incr. unfold LOOK_SHARE. lra. }
      unfold VARIANCE_SHARE. nra. }
    apply chance_weaken with (fun l => (exists j, (j < J)%nat /\ wrong_look j l) \/ false_on_a_track d X g s (1 - VARIANCE_SHARE) delta n (fun _ _ B => v <= B) l)
      (total (fun j => VARIANCE_SHARE * LOOK_SHARE ^ S j * delta) J + (1 - VARIANCE_SHARE) * delta).
    - apply chance_or.
      + apply chance_any. intros j _. unfold wrong_look.
        destruct (classic ((2 <= count j <= n)%nat /\ t_of kappa (log_of_variance_look delta j) (count j) < 1)) as [[Hc Ht]|N].
        * apply chance_weaken with (fun l => estimate d X (firstn (count j) l) / (1 - t_of kappa (log_of_variance_look delta j) (count j)) < v)
            (exp (- log_of_variance_look delta j)).
          -- apply (chance_prefix P (count j) (fun l => estimate d X l / (1 - t_of kappa (log_of_variance_look delta j) (count j)) < v)); [lia|].
             apply (variance_look P d X g v kappa mean_is_g variance third fourth); try assumption; [|lia].
             unfold log_of_variance_look. pose proof (ln_increasing _ _ (proj1 (Hx j)) (proj2 (Hx j))). rewrite ln_1 in *. lra.
          -- intros l _ H. apply H.
          -- unfold log_of_variance_look. rewrite Ropp_involutive, exp_ln by apply Hx. lra.
        * apply chance_weaken with (fun _ => False) 0; [apply chance_never; auto | intros l _ H; apply N; tauto | left; apply Hx].
      + apply (tracks P d X g v mean_is_g); [exists v; split; [lra | assumption] | assumption | unfold VARIANCE_SHARE; lra | assumption].
    - intros l _ (i & Hi & k & B & Hk & (j & Hj & Hc & Ht & HB) & HF).
      destruct (Rle_lt_dec v B) as [H|H].
      + right. exists i. split; [assumption|]. exists k, B. repeat split; try assumption; apply HF.
      + left. exists j. split; [assumption|]. repeat split; [lia | lia | assumption | rewrite <- HB; assumption].
    - pose proof (shares_of_looks delta J ltac:(lra)). lra.
  Qed.
End Kurtosis.

(** * The kurtosis of a mean *)

(* In the code: kappa / m + 3.0 * (1.0 - 1.0 / m) *)
Definition kurtosis_of_mean kappa m := kappa / INR m + 3 * (1 - 1 / INR m).

Section MeanKurtosis.
  Context {Omega : Type} (P : Expectation Omega) (d : nat) (X : Omega -> Vec) (g : Vec) (V kappa : R).
  Let A w := sub (X w) g.
  Hypothesis mean_is_g : forall i, (i < d)%nat -> integral P (fun w => X w i) (g i).
  Hypothesis variance : integral P (fun w => dot d (A w) (A w)) V.
  (* where E |A|^4 is finite, so are these *)
  Variables (C : nat -> Vec) (t : Vec) (f : R).
  Hypothesis second : forall i j, (i < d)%nat -> (j < d)%nat -> integral P (fun w => A w j * A w i) (C i j).
  Hypothesis third : forall i, (i < d)%nat -> integral P (fun w => dot d (A w) (A w) * A w i) (t i).
  Hypothesis fourth : integral P (fun w => dot d (A w) (A w) * dot d (A w) (A w)) f.
  Hypothesis kurtosis : f <= kappa * (V * V).
  Let D := deviation X g.

  Definition times (z : Vec) : Vec := fun i => dot d (C i) z.

  Lemma first y : integral P (fun w => dot d (A w) y) 0.
  Proof. apply (sample_dot P d X g mean_is_g). Qed.
  Lemma coordinate i : (i < d)%nat -> integral P (fun w => A w i) 0.
  Proof.
    intro Hi. eapply integral_eq; [apply (integral_linear P 1 (- g i) _ _ _ _ (mean_is_g i Hi) (integral_const P 1)) | | ring].
    intro w. unfold A, sub. ring.
  Qed.
  Lemma along_coordinate z i : (i < d)%nat -> integral P (fun w => dot d (A w) z * A w i) (dot d (C i) z).
  Proof.
    intro Hi. assert (K : forall n, (n <= d)%nat -> integral P (fun w => dot n (A w) z * A w i) (dot n (C i) z)).
    { induction n as [|n IH]; intro Hn; cbn [dot].
      - eapply integral_eq; [apply (integral_const P 0) | intro w; cbv beta; ring | reflexivity].
      - eapply integral_eq; [apply (integral_linear P 1 (z n) _ _ _ _ (IH ltac:(lia)) (second i n Hi ltac:(lia))) | intro w; cbv beta; ring | ring]. }
    apply K. lia.
  Qed.
  Lemma along_two z y : integral P (fun w => dot d (A w) z * dot d (A w) y) (dot d (times z) y).
  Proof.
    assert (K : forall n, (n <= d)%nat -> integral P (fun w => dot d (A w) z * dot n (A w) y) (dot n (times z) y)).
    { induction n as [|n IH]; intro Hn; cbn [dot].
      - eapply integral_eq; [apply (integral_const P 0) | intro w; cbv beta; ring | reflexivity].
      - eapply integral_eq; [apply (integral_linear P 1 (y n) _ _ _ _ (IH ltac:(lia)) (along_coordinate z n ltac:(lia))) | intro w; cbv beta; ring | unfold times; ring]. }
    apply K. lia.
  Qed.
  Lemma third_along y : integral P (fun w => dot d (A w) (A w) * dot d (A w) y) (dot d t y).
  Proof.
    assert (K : forall n, (n <= d)%nat -> integral P (fun w => dot d (A w) (A w) * dot n (A w) y) (dot n t y)).
    { induction n as [|n IH]; intro Hn; cbn [dot].
      - eapply integral_eq; [apply (integral_const P 0) | intro w; cbv beta; ring | reflexivity].
      - eapply integral_eq; [apply (integral_linear P 1 (y n) _ _ _ _ (IH ltac:(lia)) (third n ltac:(lia))) | intro w; cbv beta; ring | ring]. }
    apply K. lia.
  Qed.
  (* E <A, C A>, the sum of the squares of all covariances *)
  Definition cov2 := total (fun i => dot d (C i) (C i)) d.
  Lemma form_mean : integral P (fun w => dot d (times (A w)) (A w)) cov2.
  Proof.
    assert (K : forall n, (n <= d)%nat -> integral P (fun w => dot n (times (A w)) (A w)) (total (fun i => dot d (C i) (C i)) n)).
    { induction n as [|n IH]; intro Hn.
      - apply (integral_const P 0).
      - eapply integral_eq; [apply (integral_plus P _ _ _ _ (IH ltac:(lia)) (along_coordinate (C n) n ltac:(lia))) | | reflexivity].
        intro w. cbn [dot]. unfold times at 2. rewrite (dot_comm d (C n) (A w)). reflexivity. }
    apply K. lia.
  Qed.
  Lemma cov2_at_most : cov2 <= V * V.
  Proof.
    destruct form_mean as [F1 F2]. rewrite <- F2. destruct (integral_scale P V _ _ variance) as [G1 G2].
    rewrite <- G2. apply E_monotone; [assumption | assumption|]. intro w.
    destruct (along_two (A w) (A w)) as [S1 S2]. destruct (integral_scale P (dot d (A w) (A w)) _ _ variance) as [T1 T2].
    rewrite <- S2, (Rmult_comm V), <- T2. apply E_monotone; [assumption | assumption|]. intro w'.
    pose proof (cauchy_schwarz d (A w') (A w)) as Cs. rewrite <- !norm_square.
    pose proof (norm_nonneg d (A w')). pose proof (norm_nonneg d (A w)). nra.
  Qed.

  Lemma deviation_cons z w l : add z (D (w :: l)) = add (add z (A w)) (D l).
  Proof. apply functional_extensionality. intro i. unfold D, A, add, sub. simpl. unfold add, sub. ring. Qed.
  Lemma deviation_nil z : add z (D []) = z.
  Proof. apply functional_extensionality. intro i. unfold D, add. simpl. unfold zero. ring. Qed.
  Lemma times_add z y : dot d (times (add z y)) (add z y) = dot d (times z) z + dot d (times z) y + dot d (times y) z + dot d (times y) y.
  Proof.
    assert (K : times (add z y) = add (times z) (times y)).
    { apply functional_extensionality. intro i. unfold times, add at 2. rewrite !(dot_comm d (C i) _), dot_add. reflexivity. }
    rewrite K, dot_add, (dot_comm d (times z) (add _ _)), (dot_comm d (times y) (add _ _)), !dot_add.
    rewrite (dot_comm d z (times z)), (dot_comm d y (times z)), (dot_comm d z (times y)), (dot_comm d y (times y)). ring.
  Qed.
  Lemma times_first z : integral P (fun w => dot d (times (A w)) z) 0.
  Proof.
    assert (K : forall n, (n <= d)%nat -> integral P (fun w => dot n (times (A w)) z) 0).
    { induction n as [|n IH]; intro Hn; cbn [dot].
      - apply (integral_const P 0).
      - eapply integral_eq; [apply (integral_linear P 1 (z n) _ _ _ _ (IH ltac:(lia)) (first (C n))) | | ring].
        intro w. cbv beta. unfold times at 2. rewrite (dot_comm d (C n)). ring. }
    apply K. lia.
  Qed.
  Lemma norm_add z y : dot d (add z y) (add z y) = dot d z z + 2 * dot d y z + dot d y y.
  Proof. rewrite dot_add, (dot_comm d z (add _ _)), (dot_comm d y (add _ _)), !dot_add, (dot_comm d z y). ring. Qed.

  Lemma deviation_third m i : (i < d)%nat -> forall z,
    integral (draws P m) (fun l => dot d (add z (D l)) (add z (D l)) * add z (D l) i)
             (dot d z z * z i + INR m * (V * z i + 2 * times z i + t i)).
  Proof.
    intro Hi. induction m as [|m IH]; intro z.
    - eapply integral_eq; [apply (integral_draws_0 P (fun l => dot d (add z (D l)) (add z (D l)) * add z (D l) i)) | reflexivity |].
      rewrite deviation_nil. simpl. ring.
    - eapply integral_draws_S; [intro w; eapply integral_eq; [apply (IH (add z (A w))) | intro l; rewrite deviation_cons; reflexivity | reflexivity]|].
      eapply integral_eq.
      + apply (integral_plus P _ _ _ _ (integral_const P (dot d z z * z i + INR m * (V * z i + 2 * times z i + t i)))
          (integral_plus P _ _ _ _ (integral_linear P (dot d z z + INR m * V) (2 * z i) _ _ _ _ (coordinate i Hi) (first z))
          (integral_plus P _ _ _ _ (integral_linear P (z i) 2 _ _ _ _ variance (along_coordinate z i Hi))
                                   (integral_linear P 1 (2 * INR m) _ _ _ _ (third i Hi) (first (C i)))))).
      + intro w. cbv beta. rewrite norm_add. unfold times. rewrite !(dot_comm d (C i) _), dot_add. unfold add. ring.
      + rewrite S_INR. unfold times. ring.
  Qed.

  Fixpoint quartic (m : nat) : R := match m with O => 0 | S m => quartic m + f + INR m * (2 * (V * V) + 4 * cov2) end.
  Lemma deviation_fourth m : forall z,
    integral (draws P m) (fun l => dot d (add z (D l)) (add z (D l)) * dot d (add z (D l)) (add z (D l)))
             (dot d z z * dot d z z + INR m * (2 * V * dot d z z + 4 * dot d (times z) z + 4 * dot d t z) + quartic m).
  Proof.
    induction m as [|m IH]; intro z.
    - eapply integral_eq; [apply (integral_draws_0 P (fun l => dot d (add z (D l)) (add z (D l)) * dot d (add z (D l)) (add z (D l)))) | reflexivity |].
      rewrite deviation_nil. simpl. ring.
    - eapply integral_draws_S; [intro w; eapply integral_eq; [apply (IH (add z (A w))) | intro l; rewrite deviation_cons; reflexivity | reflexivity]|].
      eapply integral_eq.
      + apply (integral_plus P _ _ _ _ (integral_const P (dot d z z * dot d z z + INR m * (2 * V * dot d z z + 4 * dot d (times z) z + 4 * dot d t z) + quartic m))
          (integral_plus P _ _ _ _ (integral_linear P (2 * dot d z z + INR m * (2 * V)) (4 * dot d z z + INR m * (4 * V)) _ _ _ _ variance (first z))
          (integral_plus P _ _ _ _ (integral_linear P 4 4 _ _ _ _ (along_two z z) (third_along z))
          (integral_plus P _ _ _ _ (integral_linear P 1 (INR m * 4) _ _ _ _ fourth form_mean)
          (integral_plus P _ _ _ _ (integral_linear P (INR m * 4) (INR m * 4) _ _ _ _ (first (times z)) (times_first z))
                                   (integral_scale P (INR m * 4) _ _ (first t))))))).
      + intro w. cbv beta. rewrite norm_add, times_add, (dot_comm d t (add _ _)), dot_add, (dot_comm d z t), (dot_comm d (times z) (A w)). ring.
      + cbn [quartic]. rewrite S_INR. ring.
  Qed.
  Lemma quartic_at_most m : quartic m <= (INR m * kappa + 3 * INR m * (INR m - 1)) * (V * V).
  Proof.
    pose proof cov2_at_most. induction m as [|m IH]; [simpl; lra|]. cbn [quartic]. rewrite S_INR. pose proof (pos_INR m). nra.
  Qed.

  Lemma mean_deviation m l : (0 < m)%nat -> sub (mean_of X g m l) g = scale (/ INR m) (add zero (D l)).
  Proof.
    intro Hm. apply functional_extensionality. intro i. unfold sub, mean_of, scale, add, zero, D. field.
    apply Rgt_not_eq, lt_0_INR. assumption.
  Qed.
  Lemma dot_scale_scale c x : dot d (scale c x) (scale c x) = c * c * dot d x x.
  Proof. rewrite dot_scale, dot_comm, dot_scale. ring. Qed.

  Theorem third_of_mean m : (0 < m)%nat -> exists t', forall i, (i < d)%nat ->
    integral (draws P m) (fun l => dot d (sub (mean_of X g m l) g) (sub (mean_of X g m l) g) * sub (mean_of X g m l) g i) (t' i).
  Proof.
    intro Hm. exists (fun i => (/ INR m * / INR m * / INR m) * (dot d zero zero * zero i + INR m * (V * zero i + 2 * times zero i + t i))).
    intros i Hi. eapply integral_eq; [apply (integral_scale _ (/ INR m * / INR m * / INR m) _ _ (deviation_third m i Hi zero)) | | reflexivity].
    intro l. cbv beta. rewrite mean_deviation, dot_scale_scale by assumption. unfold scale. ring.
  Qed.
  Theorem kurtosis_of_mean_bound m : (0 < m)%nat -> exists f', f' <= kurtosis_of_mean kappa m * (V / INR m * (V / INR m)) /\
    integral (draws P m) (fun l => dot d (sub (mean_of X g m l) g) (sub (mean_of X g m l) g) * dot d (sub (mean_of X g m l) g) (sub (mean_of X g m l) g)) f'.
  Proof.
    intro Hm. assert (HM : 0 < INR m) by (apply lt_0_INR; assumption). set (c := / INR m). assert (Hc : 0 < c) by (apply Rinv_0_lt_compat; assumption).
    exists (c * c * (c * c) * quartic m). split.
    - apply Rle_trans with (c * c * (c * c) * ((INR m * kappa + 3 * INR m * (INR m - 1)) * (V * V))).
      + apply Rmult_le_compat_l; [assert (0 < c * c) by nra; nra | apply quartic_at_most].
      + unfold kurtosis_of_mean, c. right. field. lra.
    - eapply integral_eq; [apply (integral_scale _ (c * c * (c * c)) _ _ (deviation_fourth m zero)) | |].
      + intro l. cbv beta. rewrite mean_deviation, dot_scale_scale by assumption. fold c. ring.
      + rewrite (dot_comm d (times zero)), (dot_comm d t), !dot_zero. ring.
  Qed.
End MeanKurtosis.

(** THEOREM, as the code has it: k means of m samples each, one sample of kurtosis at most kappa. *)
Theorem kurtosis_basis_of_samples {Omega} (P : Expectation Omega) d (X : Omega -> Vec) (g : Vec) V kappa C t f m s count delta n J :
  (forall i, (i < d)%nat -> integral P (fun w => X w i) (g i)) ->
  integral P (fun w => dot d (sub (X w) g) (sub (X w) g)) V ->
  (forall i j, (i < d)%nat -> (j < d)%nat -> integral P (fun w => sub (X w) g j * sub (X w) g i) (C i j)) ->
  (forall i, (i < d)%nat -> integral P (fun w => dot d (sub (X w) g) (sub (X w) g) * sub (X w) g i) (t i)) ->
  integral P (fun w => dot d (sub (X w) g) (sub (X w) g) * dot d (sub (X w) g) (sub (X w) g)) f ->
  f <= kappa * (V * V) -> 0 <= kappa ->
  (0 < m)%nat -> (forall i, 0 < s i) -> 0 < delta < 1 ->
  chance (draws P m) n (false_on_a_track d (mean_of X g m) g s (1 - VARIANCE_SHARE) delta n
                          (seen d (mean_of X g m) (kurtosis_of_mean kappa m) count delta J)) delta.
Proof.
  intros Hmean Hvar H2 H3 H4 Hf Hkappa Hm Hs Hd.
  apply (kurtosis_basis (draws P m) d (mean_of X g m) g (V / INR m) (kurtosis_of_mean kappa m)); try assumption.
  - intros i Hi. apply mean_of_mean with d; assumption.
  - apply variance_of_mean; assumption.
  - apply (third_of_mean P d X g V Hmean Hvar C t); assumption.
  - apply (kurtosis_of_mean_bound P d X g V kappa Hmean Hvar C t f); assumption.
  - assert (HM : 1 <= INR m) by (apply (le_INR 1); assumption). unfold kurtosis_of_mean.
    assert (0 <= kappa / INR m) by (apply Rmult_le_pos; [assumption | left; apply Rinv_0_lt_compat; lra]).
    assert (1 / INR m <= 1) by (apply Rmult_le_reg_r with (INR m); [lra | unfold Rdiv; rewrite Rmult_assoc, Rinv_l; lra]). lra.
Qed.

(** * Functions with kinks: from subgradients to the proximal point *)

Section Moreau.
  Context (d : nat).
  (* the points y and the subgradients G of F there *)
  Variable points : list (Vec * Vec).
  Hypothesis some : (0 < length points)%nat.
  Variables (F : Vec -> R) (mu : R) (xhat : Vec).
  Hypothesis mu_positive : 0 < mu.
  Let square x := dot d x x.
  (* F is strongly convex, and xhat minimises it *)
  Hypothesis subgradients : forall y G, In (y, G) points -> F y + dot d G (sub xhat y) + mu / 2 * square (sub xhat y) <= F xhat.
  Hypothesis minimiser : forall y G, In (y, G) points -> F xhat + mu / 2 * square (sub y xhat) <= F y.

  Definition over_points (f : Vec -> Vec -> R) : R := fold_right (fun p t => f (fst p) (snd p) + t) 0 points.
  Let K := INR (length points).
  Definition mean_point : Vec := fun i => over_points (fun y _ => y i) / K.
  Definition mean_subgradient : Vec := fun i => over_points (fun _ G => G i) / K.
  Definition point_spread := over_points (fun y _ => square (sub y mean_point)) / K.
  Definition correction := over_points (fun y G => dot d G (sub y mean_point)) / K - mu * point_spread.
  Definition distance := norm d (sub mean_point xhat).

  Lemma over_points_le f g : (forall y G, In (y, G) points -> f y G <= g y G) -> over_points f <= over_points g.
  Proof.
    unfold over_points. clear. induction points as [|[y G] l IH]; intro H; simpl; [lra|].
    apply Rplus_le_compat; [apply H; left; reflexivity | apply IH; intros; apply H; right; assumption].
  Qed.
  Lemma over_points_plus f g : over_points (fun y G => f y G + g y G) = over_points f + over_points g.
  Proof. unfold over_points. clear. induction points as [|p l IH]; simpl; [ring | rewrite IH; ring]. Qed.
  Lemma over_points_scale c f : over_points (fun y G => c * f y G) = c * over_points f.
  Proof. unfold over_points. clear. induction points as [|p l IH]; simpl; [ring | rewrite IH; ring]. Qed.
  Lemma over_points_const c : over_points (fun _ _ => c) = K * c.
  Proof.
    unfold over_points, K. clear. induction points as [|p l IH]; [simpl; ring|]. cbn [fold_right length]. rewrite IH, S_INR. ring.
  Qed.
  Lemma K_positive : 0 < K.
  Proof. apply lt_0_INR. assumption. Qed.
  Lemma over_points_dot z (pick : Vec -> Vec -> Vec) : over_points (fun y G => dot d (pick y G) z) = K * dot d (fun i => over_points (fun y G => pick y G i) / K) z.
  Proof.
    pose proof K_positive as HK. clear subgradients minimiser. induction d as [|n IH]; simpl.
    - rewrite over_points_const. ring.
    - rewrite over_points_plus, IH. replace (over_points (fun y G => pick y G n * z n)) with (z n * over_points (fun y G => pick y G n)).
      + field. lra.
      + rewrite <- over_points_scale. f_equal. apply functional_extensionality. intro y. apply functional_extensionality. intro G. ring.
  Qed.

  (** mu D^2 <= <mean G, ybar - xhat> + C *)
  Lemma from_subgradients : mu * (distance * distance) <= dot d mean_subgradient (sub mean_point xhat) + correction.
  Proof.
    pose proof K_positive as HK. unfold distance. rewrite norm_square. set (z := sub mean_point xhat).
    assert (H : over_points (fun y G => mu * square (sub y xhat)) <= over_points (fun y G => dot d G (sub y xhat))).
    { apply over_points_le. intros y G HI. pose proof (subgradients y G HI) as S1. pose proof (minimiser y G HI) as S2.
      replace (square (sub xhat y)) with (square (sub y xhat)) in S1 by (unfold square; rewrite !dot_sub_sub, (dot_comm d xhat y); ring).
      replace (dot d G (sub xhat y)) with (- dot d G (sub y xhat)) in S1 by (rewrite !(dot_comm d G), !dot_sub; ring). lra. }
    assert (H1 : over_points (fun y G => dot d G (sub y xhat)) = over_points (fun y G => dot d G (sub y mean_point)) + K * dot d mean_subgradient z).
    { replace (K * dot d mean_subgradient z) with (over_points (fun y G => dot d G z)) by (rewrite (over_points_dot z (fun _ G => G)); reflexivity).
      rewrite <- over_points_plus. f_equal. apply functional_extensionality. intro y. apply functional_extensionality. intro G.
      unfold z. rewrite !(dot_comm d G), !dot_sub. ring. }
    assert (H2 : over_points (fun y G => mu * square (sub y xhat)) = mu * (K * point_spread + K * square z)).
    { rewrite over_points_scale. f_equal.
      replace (K * point_spread) with (over_points (fun y _ => square (sub y mean_point))) by (unfold point_spread; field; lra).
      replace (K * square z) with (over_points (fun _ _ => square z)) by apply over_points_const.
      assert (Hz : over_points (fun y _ => 2 * dot d (sub y mean_point) z) = 0).
      { rewrite over_points_scale, (over_points_dot z (fun y _ => sub y mean_point)).
        replace (fun i => over_points (fun y _ : Vec => sub y mean_point i) / K) with zero; [rewrite dot_zero; ring|].
        apply functional_extensionality. intro i. unfold sub, Rminus, zero. rewrite over_points_plus, over_points_const. unfold mean_point. field. lra. }
      rewrite <- (Rplus_0_r (over_points (fun y _ => square (sub y mean_point)) + _)), <- Hz, <- !over_points_plus.
      f_equal. apply functional_extensionality. intro y. apply functional_extensionality. intro G.
      replace (sub y xhat) with (add (sub y mean_point) z) by (apply functional_extensionality; intro; unfold z, add, sub; ring).
      unfold square. rewrite dot_add_add. ring. }
    rewrite H1, H2 in H. unfold correction. apply Rmult_le_reg_l with K; [assumption|]. fold (square z).
    replace (K * (dot d mean_subgradient z + (over_points (fun y G => dot d G (sub y mean_point)) / K - mu * point_spread)))
      with (K * dot d mean_subgradient z + over_points (fun y G => dot d G (sub y mean_point)) - mu * (K * point_spread)) by (field; lra).
    lra.
  Qed.

  (* In the code: (0.5 * u * (u + u.hypot(2.0 * r))).sqrt() *)
  (** THEOREM: if the vector (mean G, C/r) is no longer than U, then D^2 <= (u^2 + u sqrt(u^2 + 4 r^2))/2 with u = U/mu. *)
  Theorem moreau_step r U : 0 < r -> 0 <= U -> square mean_subgradient + correction / r * (correction / r) <= U * U ->
    let u := U / mu in distance * distance <= (u * u + u * sqrt (u * u + 4 * (r * r))) / 2.
  Proof.
    intros Hr HU H u. pose proof from_subgradients as H2. pose proof (norm_nonneg d (sub mean_point xhat)) as HD. fold distance in HD.
    pose proof (cauchy_schwarz d mean_subgradient (sub mean_point xhat)) as C. fold distance in C.
    set (D := distance) in *. unfold square in H. rewrite <- norm_square in H. set (n := norm d mean_subgradient) in *.
    pose proof (norm_nonneg d mean_subgradient) as Hn. fold n in Hn.
    set (c := correction / r) in *. assert (Hc : correction = c * r) by (unfold c; field; lra). rewrite Hc in H2.
    assert (H3 : mu * (D * D) <= n * D + c * r) by lra.
    (* (n D + c r)^2 <= (n^2 + c^2)(D^2 + r^2) *)
    assert (H4 : mu * (D * D) * (mu * (D * D)) <= U * U * (D * D + r * r)).
    { assert (0 <= mu * (D * D)) by (apply Rmult_le_pos; [lra | nra]).
      apply Rle_trans with ((n * D + c * r) * (n * D + c * r)); [apply Rmult_le_compat; lra|].
      apply Rle_trans with ((n * n + c * c) * (D * D + r * r)).
      - pose proof (pow2_ge_0 (n * r - c * D)). nra.
      - apply Rmult_le_compat_r; [nra | assumption]. }
    set (t := D * D) in *. assert (Ht : 0 <= t) by (unfold t; nra).
    assert (Hu : 0 <= u) by (unfold u; apply Rmult_le_pos; [assumption | left; apply Rinv_0_lt_compat; assumption]).
    assert (H5 : t * t <= u * u * (t + r * r)).
    { apply Rmult_le_reg_l with (mu * mu); [nra|]. replace (mu * mu * (u * u * (t + r * r))) with (U * U * (t + r * r)) by (unfold u; field; lra). lra. }
    pose proof (sqrt_pos (u * u + 4 * (r * r))) as Hq. set (q := sqrt (u * u + 4 * (r * r))) in *.
    assert (Hqq : q * q = u * u + 4 * (r * r)) by (apply sqrt_sqrt; nra).
    (* (2 t - u^2)^2 <= (u q)^2 *)
    destruct (Rle_lt_dec t ((u * u + u * q) / 2)) as [|N]; [assumption|]. exfalso.
    assert (Huq : 0 <= u * q) by (apply Rmult_le_pos; assumption).
    assert (u * q * (u * q) < (2 * t - u * u) * (2 * t - u * u)) by (apply Rmult_le_0_lt_compat; lra).
    replace (u * q * (u * q)) with (u * u * (q * q)) in * by ring. rewrite Hqq in *. nra.
  Qed.
End Moreau.

(** * Constraints and convex terms: the gradient mapping *)

Section Terms.
  Context (d : nat).
  (* h is convex on its domain, a convex set *)
  Variables (h : Vec -> R) (domain : Vec -> Prop).
  Definition between (theta : R) (x y : Vec) : Vec := fun i => x i + theta * (y i - x i).
  Hypothesis domain_convex : forall x y theta, domain x -> domain y -> 0 <= theta <= 1 -> domain (between theta x y).
  Hypothesis h_convex : forall x y theta, domain x -> domain y -> 0 <= theta <= 1 -> h (between theta x y) <= (1 - theta) * h x + theta * h y.
  Let square x := dot d x x.

  Variables (x g xplus : Vec) (gamma : R).
  Hypothesis gamma_positive : 0 < gamma.
  Hypothesis x_in : domain x.
  Hypothesis xplus_in : domain xplus.
  (* x+ = prox(gamma, x - gamma g) *)
  Hypothesis prox : forall z, domain z ->
    h xplus + square (sub xplus (sub x (scale gamma g))) / (2 * gamma) <= h z + square (sub z (sub x (scale gamma g))) / (2 * gamma).
  Definition mapping : Vec := scale (/ gamma) (sub x xplus).
  (* D is at least the maximum over z *)
  Definition gap_at_most q D := forall z, domain z -> dot d q (sub x z) + h x - h z - square (sub z x) / (2 * gamma) <= D.

  Lemma line_nonneg A B : (forall theta, 0 < theta <= 1 -> 0 <= A + theta * B) -> 0 <= A.
  Proof.
    intro H. destruct (Rle_lt_dec 0 A) as [|N]; [assumption|]. destruct (Rle_lt_dec B 0) as [HB|HB]; [specialize (H 1 ltac:(lra)); lra|].
    assert (Ht : 0 < Rmin 1 (- A / (2 * B)) <= 1).
    { split; [apply Rmin_glb_lt; [lra | apply Rmult_lt_0_compat; [lra | apply Rinv_0_lt_compat; lra]] | apply Rmin_l]. }
    specialize (H _ Ht). pose proof (Rmin_r 1 (- A / (2 * B))) as M.
    assert (Rmin 1 (- A / (2 * B)) * B <= - A / (2 * B) * B) by (apply Rmult_le_compat_r; lra).
    replace (- A / (2 * B) * B) with (- A / 2) in * by (field; lra). lra.
  Qed.
  (* G - g is a subgradient of h at x+ *)
  Lemma mapping_subgradient : gamma * square mapping - gamma * dot d g mapping <= h x - h xplus.
  Proof.
    assert (Hm : sub x xplus = scale gamma mapping) by (apply functional_extensionality; intro i; unfold mapping, scale, sub; field; lra).
    set (w := sub xplus (sub x (scale gamma g))).
    assert (Hw : w = scale gamma (sub g mapping)).
    { apply functional_extensionality. intro i. pose proof (f_equal (fun f => f i) Hm) as K. unfold sub, scale in K. unfold w, sub, scale. lra. }
    enough (0 <= (h x - h xplus + gamma * (dot d g mapping - square mapping))) by lra.
    apply line_nonneg with (gamma / 2 * square mapping). intros theta Ht.
    pose proof (prox (between theta xplus x) (domain_convex xplus x theta xplus_in x_in ltac:(lra))) as Hp. fold w in Hp.
    pose proof (h_convex xplus x theta xplus_in x_in ltac:(lra)) as Hc.
    replace (sub (between theta xplus x) (sub x (scale gamma g))) with (add w (scale (theta * gamma) mapping)) in Hp.
    - assert (Hwm : dot d w mapping = gamma * (dot d g mapping - dot d mapping mapping)) by (rewrite Hw, dot_scale, dot_sub; reflexivity).
      clearbody w. unfold square in *.
      rewrite dot_add_add, (dot_comm d w (scale _ _)), !dot_scale, (dot_comm d mapping (scale _ _)), dot_scale, (dot_comm d mapping w), Hwm in Hp.
      set (p := dot d w w / (2 * gamma)) in *.
      replace ((dot d w w + 2 * (theta * gamma * (gamma * (dot d g mapping - dot d mapping mapping))) + theta * gamma * (theta * gamma * dot d mapping mapping)) / (2 * gamma))
        with (p + theta * (gamma * (dot d g mapping - dot d mapping mapping)) + theta * theta * (gamma / 2 * dot d mapping mapping)) in Hp by (unfold p; field; lra).
      apply Rmult_le_reg_l with theta; [lra|]. lra.
    - apply functional_extensionality. intro i. pose proof (f_equal (fun f => f i) Hm) as K. unfold sub, scale in K.
      unfold w, add, scale, between, sub. replace (x i - xplus i) with (gamma * mapping i) by lra. ring.
  Qed.

  (** LEMMA: |G| <= sqrt(2 D(q)/gamma) + max(0, <g - q, u>) for every q, u the direction of G. *)
  Theorem gradient_mapping q D : gap_at_most q D ->
    norm d mapping <= sqrt (2 * D / gamma) + Rmax 0 (dot d (sub g q) (direction d mapping)).
  Proof.
    intro HD. destruct (norm_nonneg d mapping) as [HN|HN].
    2: { rewrite <- HN. pose proof (sqrt_pos (2 * D / gamma)). pose proof (Rmax_l 0 (dot d (sub g q) (direction d mapping))). lra. }
    rewrite along_direction. set (N := norm d mapping) in *. set (c := dot d (sub g q) mapping).
    assert (Hm : sub x xplus = scale gamma mapping) by (apply functional_extensionality; intro i; unfold mapping, scale, sub; field; lra).
    pose proof mapping_subgradient as Hs. unfold square in Hs. rewrite <- norm_square in Hs. fold N in Hs.
    assert (HD2 : forall theta, 0 <= theta <= 1 -> gamma * (theta * (N * N - c) - theta * theta * (N * N) / 2) <= D).
    { intros theta Ht. pose proof (HD (between theta x xplus) (domain_convex x xplus theta x_in xplus_in Ht)) as H.
      pose proof (h_convex x xplus theta x_in xplus_in Ht) as Hc.
      replace (sub x (between theta x xplus)) with (scale (theta * gamma) mapping) in H.
      2: { apply functional_extensionality. intro i. pose proof (f_equal (fun f => f i) Hm) as K. unfold sub, scale in K. unfold scale, sub, between.
           rewrite Rmult_assoc, <- K. ring. }
      replace (sub (between theta x xplus) x) with (scale (- (theta * gamma)) mapping) in H.
      2: { apply functional_extensionality. intro i. pose proof (f_equal (fun f => f i) Hm) as K. unfold sub, scale in K. unfold scale, sub, between.
           replace (- (theta * gamma) * mapping i) with (- theta * (gamma * mapping i)) by ring. rewrite <- K. ring. }
      unfold square in H. rewrite !dot_scale, (dot_comm d mapping (scale _ _)), dot_scale, <- norm_square, (dot_comm d q (scale _ _)), dot_scale, (dot_comm d mapping q) in H.
      fold N in H. unfold c. rewrite dot_sub.
      replace (- (theta * gamma) * (- (theta * gamma) * (N * N)) / (2 * gamma)) with (theta * theta * gamma * (N * N) / 2) in H by (field; lra).
      assert (theta * (gamma * (N * N) - gamma * dot d g mapping) <= theta * (h x - h xplus)) by (apply Rmult_le_compat_l; lra). lra. }
    assert (HNc : c / N * N = c) by (field; lra). set (t := c / N) in *. rewrite <- HNc in HD2.
    assert (root : forall y, 0 <= y -> gamma * (y * y) / 2 <= D -> y <= sqrt (2 * D / gamma)).
    { intros y Hy H. rewrite <- (sqrt_square y Hy). apply sqrt_le_1_alt. apply Rmult_le_reg_r with (gamma / 2); [lra|].
      replace (2 * D / gamma * (gamma / 2)) with D by (field; lra). lra. }
    destruct (Rle_lt_dec t 0) as [Ht|Ht]; [|destruct (Rle_lt_dec N t) as [Hl|Hl]].
    - rewrite Rmax_left by assumption. rewrite Rplus_0_r. apply root; [lra|]. specialize (HD2 1 ltac:(lra)).
      assert (0 <= gamma * (- t * N)) by (apply Rmult_le_pos; nra). lra.
    - rewrite Rmax_right by lra. pose proof (sqrt_pos (2 * D / gamma)). lra.
    - rewrite Rmax_right by lra. enough (N - t <= sqrt (2 * D / gamma)) by lra. apply root; [lra|].
      assert (Hth : 0 <= (N - t) / N <= 1).
      { split; [apply Rmult_le_pos; [lra | left; apply Rinv_0_lt_compat; assumption]|].
        apply Rmult_le_reg_r with N; [assumption|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
      specialize (HD2 _ Hth). replace (gamma * ((N - t) / N * (N * N - t * N) - (N - t) / N * ((N - t) / N) * (N * N) / 2))
        with (gamma * ((N - t) * (N - t)) / 2) in HD2 by (field; lra). assumption.
  Qed.

  (** THEOREM: the certificate of a gradient mapping. The centre g0 is fixed before the first draw, beta >= |g - g0|. *)
  Theorem terms_track {Omega} (P : Expectation Omega) (X : Omega -> Vec) v g0 beta s ell n (D : Vec -> R) :
    (forall i, (i < d)%nat -> integral P (fun w => X w i) (g i)) ->
    (exists v', v' <= v /\ integral P (fun w => square (sub (X w) g)) v') ->
    (forall q, gap_at_most q (D q)) -> norm d (sub g g0) <= beta -> 0 < s -> 0 <= v -> 0 <= ell ->
    let estimate k l : Vec := add g0 (scale (/ INR k) (clipped_sum d (fun w => sub (X w) g0) s (firstn k l))) in
    chance P n (fun l => exists k, (0 < k <= n)%nat /\
      sqrt (2 * D (estimate k l) / gamma) + s * (v + beta * beta) / 2 + ell / (s * INR k) < norm d mapping) (exp (- ell)).
  Proof.
    intros Hmean Hvar HD Hbeta Hs Hv Hell estimate. set (X0 := fun w => sub (X w) g0). set (g' := sub g g0).
    destruct (norm_nonneg d mapping) as [HN|HN].
    2: { apply chance_weaken with (fun _ => False) 0; [apply chance_never; auto | | left; apply exp_pos].
      intros l _ (k & Hk & H). rewrite <- HN in H. assert (HK : 0 < INR k) by (apply lt_0_INR; lia).
      pose proof (sqrt_pos (2 * D (estimate k l) / gamma)). assert (0 <= ell / (s * INR k)) by (apply Rmult_le_pos; [lra | left; apply Rinv_0_lt_compat; nra]). nra. }
    pose proof (direction_unit d mapping HN) as Hu. set (u := direction d mapping) in *.
    assert (Hmean' : forall i, (i < d)%nat -> integral P (fun w => X0 w i) (g' i)).
    { intros i Hi. eapply integral_eq; [apply (integral_plus P _ _ _ _ (Hmean i Hi) (integral_const P (- g0 i))) | |]; intros; unfold X0, g', sub; ring. }
    assert (Hvar' : exists v', v' <= v /\ integral P (fun w => dot d (sub (X0 w) g') (sub (X0 w) g')) v').
    { destruct Hvar as [v' [H1 H2]]. exists v'. split; [assumption|]. eapply integral_eq; [exact H2 | | reflexivity].
      intro w. unfold square. replace (sub (X0 w) g') with (sub (X w) g); [reflexivity|].
      apply functional_extensionality. intro i. unfold X0, g', sub. ring. }
    eapply chance_weaken; [apply (all_k_at_once P (Z d X0 u s) _ ell n (near_factor P d X0 g' v Hmean' Hvar' u Hu s Hs)) | | lra].
    intros l _ (k & Hk & H). exists k. split; [lia|].
    destruct (Rle_lt_dec (sum (Z d X0 u s) (firstn k l)) (INR k * (s * dot d g' u - s * s * (v + dot d g' g') / 2) - ell)) as [|N]; [assumption|].
    exfalso. assert (HK : 0 < INR k) by (apply lt_0_INR; lia). set (S := clipped_sum d X0 s (firstn k l)) in *.
    assert (HZ : sum (Z d X0 u s) (firstn k l) = s * dot d S u).
    { unfold S. generalize (firstn k l). clear - Hs. intro l0. induction l0 as [|w l0 IH]; [simpl; rewrite dot_zero; ring|].
      change (clipped_sum d X0 s (w :: l0)) with (add (clip d s (X0 w)) (clipped_sum d X0 s l0)). change (sum (Z d X0 u s) (w :: l0)) with (Z d X0 u s w + sum (Z d X0 u s) l0).
      rewrite dot_add, IH, Z_clip by assumption. ring. }
    rewrite HZ in N.
    (* <g - estimate, u> < s (v + beta^2)/2 + ell/(s k) *)
    assert (Ht : dot d (sub g (estimate k l)) u <= s * (v + beta * beta) / 2 + ell / (s * INR k)).
    { change (estimate k l) with (add g0 (scale (/ INR k) S)).
      replace (sub g (add g0 (scale (/ INR k) S))) with (sub g' (scale (/ INR k) S)) by (apply functional_extensionality; intro i; unfold g', sub, add; ring).
      rewrite dot_sub, dot_scale. pose proof (norm_nonneg d g') as Hg. fold g' in Hbeta. rewrite <- norm_square in N.
      apply Rmult_le_reg_l with (s * INR k); [nra|].
      replace (s * INR k * (dot d g' u - / INR k * dot d S u)) with (INR k * (s * dot d g' u) - s * dot d S u) by (field; lra).
      replace (s * INR k * (s * (v + beta * beta) / 2 + ell / (s * INR k))) with (INR k * (s * s * (v + beta * beta) / 2) + ell) by (field; lra).
      assert (norm d g' * norm d g' <= beta * beta) by nra.
      assert (INR k * (s * s * (v + norm d g' * norm d g') / 2) <= INR k * (s * s * (v + beta * beta) / 2)) by (apply Rmult_le_compat_l; nra). lra. }
    pose proof (gradient_mapping _ _ (HD (estimate k l))) as HG. fold u in HG.
    assert (0 <= s * (v + beta * beta) / 2 + ell / (s * INR k)).
    { assert (0 <= ell / (s * INR k)) by (apply Rmult_le_pos; [lra | left; apply Rinv_0_lt_compat; nra]). nra. }
    assert (Rmax 0 (dot d (sub g (estimate k l)) u) <= s * (v + beta * beta) / 2 + ell / (s * INR k)) by (apply Rmax_lub; assumption). lra.
  Qed.
End Terms.
